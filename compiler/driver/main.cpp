// The driver.
int main() { return 2; }

// capstan-run: executes a plan.
int main() { return 2; }

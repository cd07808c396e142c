#include "grammar/toml/toml_scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/source/byte_order_mark.h"
#include "grammar/source/utf8.h"

namespace capstan {
namespace {

bool is_blank_or_line_end(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  TomlScan run() {
    frames_.push_back({});
    at_ = byte_order_mark_size(text_);
    bool line_start = true;  // only blanks since the last line ending
    while (at_ < text_.size()) {
      const char c = text_[at_];
      switch (c) {
        case '\n':
          if (top().bracket == 0) top().in_value = false, top().dots = 0;
          line_start = true;
          ++at_;
          continue;
        case ' ':
        case '\t':
        case '\r':
          ++at_;
          continue;
        case '#':
          take_comment();
          continue;
        case '"':
        case '\'':
          take_string(c);
          break;
        case '[':
          if (top().bracket == 0 && line_start && !top().in_value)
            take_header();
          else
            open(c);
          break;
        case '{':
          open(c);
          break;
        case ']':
        case '}':
          if (top().bracket != 0) frames_.pop_back();
          ++at_;
          break;
        case '.':
          if (top().bracket != '[' && !top().in_value) take_dot();
          ++at_;
          break;
        case '=':
          top().in_value = true;
          ++at_;
          break;
        case ',':
          top().in_value = false;
          top().dots = 0;
          ++at_;
          break;
        default:
          check_ascii();
          ++at_;
      }
      line_start = false;
    }
    return std::move(scan_);
  }

 private:
  struct Frame {
    char bracket = 0;         // '[', '{', or 0 for the document
    std::uint32_t depth = 0;  // levels above this frame's own keys or items
    std::uint32_t dots = 0;   // of the key being read
    bool in_value = false;
  };

  Frame& top() { return frames_.back(); }

  void check_ascii() {
    if (static_cast<unsigned char>(text_[at_]) >= 0x80 && !scan_.beyond_ascii)
      scan_.beyond_ascii = static_cast<std::uint32_t>(at_);
  }
  void check_depth(std::uint32_t depth) {
    if (depth > kMaxTomlDepth && !scan_.too_deep) scan_.too_deep = static_cast<std::uint32_t>(at_);
  }
  void count_table() {
    if (++tables_ > kMaxTomlTables && !scan_.too_many) scan_.too_many = static_cast<std::uint32_t>(at_);
  }
  void take_dot() {
    ++top().dots;
    count_table();
    check_depth(top().depth + top().dots + 1);
  }
  void open(char bracket) {
    const std::uint32_t depth = top().depth + top().dots + 1;
    check_depth(depth);
    // Beyond the limit the answer is known; no deeper frames, so that hostile text costs no memory.
    if (!scan_.too_deep) frames_.push_back({bracket, depth, 0, false});
    ++at_;
  }
  void take_comment() {
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::size_t next = end;
    if (end > at_ && text_[end - 1] == '\r') --end;
    scan_.comments.push_back({static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(end)});
    at_ = next;
  }
  void take_header() {
    count_table();
    std::uint32_t parts = 1;
    while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '#') {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        take_string(c);
        continue;
      }
      check_ascii();
      if (c == '.') {
        ++parts;
        count_table();
        check_depth(parts);
      }
      ++at_;
      if (c == ']') break;
    }
    frames_.resize(1);
    top() = {0, parts, 0, true};  // in_value: what follows on this line starts no key
  }
  void take_string(char quote) {
    const auto begin = static_cast<std::uint32_t>(at_);
    const std::string_view rest = text_.substr(at_);
    const bool multiline = rest.size() >= 3 && rest[1] == quote && rest[2] == quote;
    at_ += multiline ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && quote == '"') {
        at_ = std::min(at_ + 1, text_.size());
        // A continued line: the blanks up to its first character belong to the backslash.
        while (multiline && at_ < text_.size() && is_blank_or_line_end(text_[at_])) ++at_;
        if (at_ == text_.size()) break;
        check_ascii();
        if (!multiline || text_[at_ - 1] == '\\') ++at_;
        continue;
      }
      if (c == '\n' && !multiline) break;
      ++at_;
      if (c != quote) continue;
      if (!multiline) return;
      if (text_.substr(at_).starts_with(std::string(2, quote))) {
        at_ += 2;
        // Up to two quotes may stand directly before the closing three.
        for (int extra = 0; extra < 2 && at_ < text_.size() && text_[at_] == quote; ++extra) ++at_;
        return;
      }
    }
    if (!scan_.unclosed) scan_.unclosed = begin;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Frame> frames_;
  std::uint32_t tables_ = 0;
  TomlScan scan_;
};

}  // namespace

TomlScan scan_toml(std::string_view text) {
  return Scanner(text).run();
}

std::optional<BadByte> find_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\0') {
      return BadByte{static_cast<std::uint32_t>(at),
                     "a NUL byte stands in the text; this looks like a binary file"};
    }
    const std::size_t length = utf8_sequence(text, at);
    if (length == 0) {
      return BadByte{static_cast<std::uint32_t>(at), fmt::format("byte 0x{:02X} is no valid UTF-8 here",
                                                                 static_cast<unsigned char>(text[at]))};
    }
    at += length;
  }
  return std::nullopt;
}

}  // namespace capstan

#include "grammar/environment/allocator_conf.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>

namespace capstan {
namespace {

enum class OptionKind { boolean, megabytes, fraction, backend, divisions, threads };

struct KnownOption {
  std::string_view name;
  OptionKind kind;
};

constexpr KnownOption kOptions[] = {
    {"backend", OptionKind::backend},
    {"expandable_segments", OptionKind::boolean},
    {"garbage_collection_threshold", OptionKind::fraction},
    {"graph_capture_record_stream_reuse", OptionKind::boolean},
    {"large_segment_size_mb", OptionKind::megabytes},
    {"max_non_split_rounding_mb", OptionKind::megabytes},
    {"max_split_size_mb", OptionKind::megabytes},
    {"per_process_memory_fraction", OptionKind::fraction},
    {"pinned_num_register_threads", OptionKind::threads},
    {"pinned_reserve_segment_size_mb", OptionKind::megabytes},
    {"pinned_use_background_threads", OptionKind::boolean},
    {"pinned_use_cuda_host_register", OptionKind::boolean},
    {"pinned_use_hip_host_register", OptionKind::boolean},
    {"release_lock_on_cudamalloc", OptionKind::boolean},
    {"release_lock_on_hipmalloc", OptionKind::boolean},
    {"roundup_power2_divisions", OptionKind::divisions},
};

struct Token {
  std::string text;
  Span span;
  bool is_mark() const {
    return text.size() == 1 && std::string_view(",:[]").find(text[0]) != std::string_view::npos;
  }
};

std::vector<Token> split(std::string_view text, Span where) {
  std::vector<Token> tokens;
  bool open = false;  // the last token may still grow; blanks do not end it, as in PyTorch's lexer
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    const Span place{where.source, where.begin + static_cast<std::uint32_t>(i),
                     where.begin + static_cast<std::uint32_t>(i + 1)};
    const bool mark = std::string_view(",:[]").find(c) != std::string_view::npos;
    if (mark || !open) {
      tokens.push_back({std::string(1, c), place});
    } else {
      tokens.back().text += c;
      tokens.back().span.end = place.end;
    }
    open = !mark;
  }
  return tokens;
}

bool is_power_of_two(std::int64_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

class Parser {
 public:
  Parser(std::string_view text, Span where, std::vector<SyntaxProblem>& problems)
      : tokens_(split(text, where)),
        where_(where),
        end_(where.begin + static_cast<std::uint32_t>(text.size())),
        problems_(problems) {}

  std::vector<AllocatorOption> run() {
    std::vector<AllocatorOption> options;
    while (at_ < tokens_.size()) {
      AllocatorOption option;
      if (!take_option(option)) return options;
      options.push_back(std::move(option));
      if (at_ < tokens_.size() && !take_mark(',')) return options;
    }
    return options;
  }

 private:
  bool refuse(std::string message, Span place, std::vector<std::string> expected = {}) {
    problems_.push_back({std::move(message), place, std::move(expected)});
    return false;
  }
  Span here() const {
    if (at_ < tokens_.size()) return tokens_[at_].span;
    return {where_.source, end_, end_};
  }
  std::string found() const {
    return at_ < tokens_.size() ? fmt::format("`{}`", tokens_[at_].text) : "the end";
  }

  bool take_mark(char mark) {
    if (at_ >= tokens_.size() || tokens_[at_].text != std::string(1, mark)) {
      return refuse(fmt::format("expected `{}`, found {}", mark, found()), here(), {std::string(1, mark)});
    }
    ++at_;
    return true;
  }

  bool take_option(AllocatorOption& option) {
    const Token& name = tokens_[at_];
    const KnownOption* known = nullptr;
    for (const KnownOption& candidate : kOptions) {
      if (candidate.name == name.text) known = &candidate;
    }
    if (known == nullptr) {
      return refuse(fmt::format("`{}` is no option of the allocator; PyTorch stops here", name.text),
                    name.span);
    }
    option.name = name.text;
    option.name_span = name.span;
    ++at_;
    if (!take_mark(':')) return false;
    if (known->kind == OptionKind::divisions && at_ < tokens_.size() && tokens_[at_].text == "[")
      return take_divisions(option);
    if (at_ >= tokens_.size() || tokens_[at_].is_mark()) {
      return refuse(fmt::format("`{}` needs a value, found {}", option.name, found()), here());
    }
    const Token& value = tokens_[at_++];
    option.value_span = value.span;
    return convert(*known, value, option);
  }

  bool take_divisions(AllocatorOption& option) {
    Value::List list;
    Span span = tokens_[at_++].span;
    while (true) {
      std::string entry;
      if (at_ >= tokens_.size() || tokens_[at_].is_mark())
        return refuse(fmt::format("expected a size in MB or `>`, found {}", found()), here());
      if (tokens_[at_].text != ">" && !whole_number(tokens_[at_].text)) {
        return refuse(fmt::format("`{}` is no size in MB", tokens_[at_].text), tokens_[at_].span);
      }
      entry = tokens_[at_++].text + ":";
      if (!take_mark(':')) return false;
      if (at_ >= tokens_.size() || tokens_[at_].is_mark())
        return refuse(fmt::format("expected a number of divisions, found {}", found()), here());
      const auto divisions = whole_number(tokens_[at_].text);
      if (!divisions || (*divisions != 0 && !is_power_of_two(*divisions))) {
        return refuse(fmt::format("`{}` is no power of two", tokens_[at_].text), tokens_[at_].span);
      }
      list.emplace_back(entry + tokens_[at_++].text);
      if (at_ < tokens_.size() && tokens_[at_].text == "]") break;
      if (!take_mark(',')) return false;
    }
    span.end = tokens_[at_++].span.end;
    option.value = Value(std::move(list));
    option.value_span = span;
    return true;
  }

  static std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }

  bool convert(const KnownOption& known, const Token& token, AllocatorOption& option) {
    const std::string& text = token.text;
    switch (known.kind) {
      case OptionKind::boolean:
        if (text != "True" && text != "False") {
          return refuse(fmt::format("`{}` takes `True` or `False`, not `{}`", option.name, text), token.span,
                        {"True", "False"});
        }
        option.value = Value(text == "True");
        return true;
      case OptionKind::backend:
        if (text != "native" && text != "cudaMallocAsync" && text != "hipMallocAsync") {
          return refuse(fmt::format("`{}` is no allocator backend", text), token.span,
                        {"native", "cudaMallocAsync"});
        }
        option.value = Value(text);
        return true;
      case OptionKind::fraction: {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool inclusive = option.name == "per_process_memory_fraction";
        if (error != std::errc() || end != text.data() + text.size() ||
            !(value > 0.0 || (inclusive && value == 0.0)) || !(value < 1.0 || (inclusive && value == 1.0))) {
          return refuse(fmt::format("`{}` takes a number between 0 and 1, not `{}`", option.name, text),
                        token.span);
        }
        option.value = Value(value);
        return true;
      }
      case OptionKind::megabytes:
      case OptionKind::threads:
      case OptionKind::divisions: {
        const auto value = whole_number(text);
        if (!value || *value < 0)
          return refuse(fmt::format("`{}` takes a whole number, not `{}`", option.name, text), token.span);
        if (option.name == "max_split_size_mb" && *value <= 20) {
          return refuse("`max_split_size_mb` must be greater than 20", token.span);
        }
        if (option.name == "max_non_split_rounding_mb" && *value <= 20) {
          return refuse("`max_non_split_rounding_mb` must be greater than 20", token.span);
        }
        if (known.kind == OptionKind::divisions && !is_power_of_two(*value)) {
          return refuse(fmt::format("`{}` is no power of two", text), token.span);
        }
        if (known.kind == OptionKind::threads && (!is_power_of_two(*value) || *value > 128)) {
          return refuse("`pinned_num_register_threads` takes a power of two up to 128", token.span);
        }
        option.value = Value(*value);
        return true;
      }
    }
    return true;
  }

  std::vector<Token> tokens_;
  Span where_;
  std::uint32_t end_;
  std::vector<SyntaxProblem>& problems_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<AllocatorOption> parse_allocator_conf(std::string_view text, Span where,
                                                  std::vector<SyntaxProblem>& problems) {
  return Parser(text, where, problems).run();
}

}  // namespace capstan

#include "grammar/arguments/list_expression.h"

#include <charconv>
#include <cstddef>
#include <utility>

namespace capstan {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxItems = 10000;

struct Operand {
  bool is_list = false;
  std::int64_t number = 0;
  std::vector<std::int64_t> items;
};

class Evaluator {
 public:
  explicit Evaluator(std::string_view text) : text_(text) {}

  std::optional<Operand> run() {
    auto result = sum(0);
    skip_blanks();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::optional<Operand> sum(int depth) {
    auto left = product(depth);
    while (left && take('+')) {
      auto right = product(depth);
      if (!right || right->is_list != left->is_list) return std::nullopt;
      if (left->is_list) {
        if (left->items.size() + right->items.size() > kMaxItems) return std::nullopt;
        left->items.insert(left->items.end(), right->items.begin(), right->items.end());
      } else if (__builtin_add_overflow(left->number, right->number, &left->number)) {
        return std::nullopt;
      }
    }
    return left;
  }

  std::optional<Operand> product(int depth) {
    auto left = atom(depth);
    while (left && take('*')) {
      auto right = atom(depth);
      if (!right || (left->is_list && right->is_list)) return std::nullopt;
      if (!left->is_list && !right->is_list) {
        if (__builtin_mul_overflow(left->number, right->number, &left->number)) return std::nullopt;
        continue;
      }
      if (right->is_list) std::swap(*left, *right);
      if (!repeat(left->items, right->number)) return std::nullopt;
    }
    return left;
  }

  static bool repeat(std::vector<std::int64_t>& items, std::int64_t times) {
    if (times <= 0 || items.empty()) {
      items.clear();
      return true;
    }
    if (static_cast<std::uint64_t>(times) > kMaxItems / items.size()) return false;
    const std::vector<std::int64_t> once = items;
    for (std::int64_t i = 1; i < times; ++i) items.insert(items.end(), once.begin(), once.end());
    return true;
  }

  std::optional<Operand> atom(int depth) {
    if (depth >= kMaxDepth) return std::nullopt;
    if (take('(')) {
      auto inner = sum(depth + 1);
      return inner && take(')') ? inner : std::nullopt;
    }
    if (take('[')) return list(depth);
    skip_blanks();
    Operand number;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number.number);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return number;
  }

  std::optional<Operand> list(int depth) {
    Operand list;
    list.is_list = true;
    while (!take(']')) {
      if (!list.items.empty() && !take(',')) return std::nullopt;
      if (!list.items.empty() && take(']')) break;  // a trailing comma
      const auto item = sum(depth + 1);
      if (!item || item->is_list || list.items.size() == kMaxItems) return std::nullopt;
      list.items.push_back(item->number);
    }
    return list;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<std::int64_t>> evaluate_list_expression(std::string_view text) {
  auto result = Evaluator(text).run();
  if (!result || !result->is_list) return std::nullopt;
  return std::move(result->items);
}

}  // namespace capstan

// Bounded reading of JSON objects by field name. The first problem is kept with the path of its field
// ("`ops[3].inputs[1]`"); later reads then do nothing, so that a reader is a plain list of fields. Internal
// to load/.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::runtime {

/// The first problem of one reading: path of the field and what is wrong with it.
struct FieldProblem {
  std::string path;
  std::string text;
};

/// One JSON value; hides the JSON library from headers. Valid while its document lives.
class JsonNode {
 public:
  JsonNode(const void* node, std::string path, std::optional<FieldProblem>& problem)
      : node_(node), path_(std::move(path)), problem_(&problem) {}

  bool failed() const { return problem_->has_value(); }
  const std::string& path() const { return path_; }
  void fail(std::string text) const;

  /// Names of an object's fields, sorted. Fails when this is no object.
  std::vector<std::string> names() const;
  /// Fails unless this is an object that has exactly these fields.
  void require_exactly(std::initializer_list<std::string_view> fields) const;
  JsonNode field(std::string_view name) const;

  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  std::uint64_t unsigned_integer(std::uint64_t high) const;
  double finite() const;
  bool boolean() const;
  /// At most `max_bytes` long.
  std::string text(std::size_t max_bytes = 4096) const;
  /// Index of the string within `names`; fails with the list of what is possible.
  std::size_t one_of(const std::vector<const char*>& names) const;
  /// Calls `each` for every element until a problem occurs; fails when there are more than `max`.
  void each(std::size_t max, const std::function<void(const JsonNode&)>& each) const;
  std::size_t size() const;

  bool is_boolean() const;
  bool is_integer() const;
  bool is_number() const;
  bool is_text() const;

 private:
  const void* node_;
  std::string path_;
  std::optional<FieldProblem>* problem_;
};

}  // namespace capstan::runtime

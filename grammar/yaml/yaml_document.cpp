#include "grammar/yaml/yaml_document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "grammar/source/byte_order_mark.h"
#include "grammar/source/utf8.h"

namespace capstan {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 500000;  // alias expansion included

/// Ends the parse from inside an event.
struct Stop {
  SyntaxProblem problem;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(SourceId source, std::string_view text, std::vector<SyntaxProblem>* duplicates,
              YamlScalars scalars)
      : source_(source), text_(text), duplicates_(duplicates), scalars_(scalars) {
    bom_ = byte_order_mark_size(text);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) stop("a second document begins here; one is read", at(mark));
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    SyntaxNode node;
    node.span = at(mark);
    node.span.end = node.span.begin + null_word(node.span.begin);
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) stop("the alias stands inside its own anchor", word(mark));
    count(found->second);
    if (frames_.size() + depth(found->second) > kMaxDepth) stop(too_deep(), word(mark));
    add(found->second, YAML::NullAnchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    SyntaxNode node;
    node.span = scalar_span(mark, value);
    if (tag == "!" || tag == "tag:yaml.org,2002:str") {
      node.scalar = Value(value);
    } else if (tag == "?" || tag == "tag:yaml.org,2002:int" || tag == "tag:yaml.org,2002:float" ||
               tag == "tag:yaml.org,2002:bool" || tag == "tag:yaml.org,2002:null") {
      node.scalar = typed_yaml_scalar(value, scalars_);
    } else {
      node.kind = SyntaxNode::Kind::unsupported;
      node.what = "value of tag " + tag;
    }
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(SyntaxNode::Kind::list, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(SyntaxNode::Kind::table, mark, anchor);
  }
  void OnMapEnd() override { close(); }

  SyntaxNode take() {
    if (!root_) {
      SyntaxNode empty;
      empty.kind = SyntaxNode::Kind::table;
      return empty;
    }
    return std::move(*root_);
  }

 private:
  struct Frame {
    SyntaxNode node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool has_key = false;
    std::string key;
    Span key_span;
    std::vector<SyntaxNode> merges;
    std::map<std::string, bool, std::less<>> keys;
    bool has_duplicates = false;
  };

  [[noreturn]] static void stop(std::string message, Span where) {
    throw Stop{{std::move(message), where, {}}};
  }
  static std::string too_deep() { return fmt::format("nesting is deeper than {} levels", kMaxDepth); }

  /// Length of the word that says null at the place; 0 where nothing does.
  std::uint32_t null_word(std::size_t begin) const {
    const std::string_view rest = text_.substr(std::min(begin, text_.size()));
    for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
      if (rest.starts_with(word) &&
          (rest.size() == word.size() ||
           std::string_view(" \t\r\n,]}").find(rest[word.size()]) != std::string_view::npos))
        return static_cast<std::uint32_t>(word.size());
    }
    return 0;
  }

  Span at(const YAML::Mark& mark) const {
    const auto begin = static_cast<std::uint32_t>(
        std::min<std::size_t>(static_cast<std::size_t>(std::max(mark.pos, 0)) + bom_, text_.size()));
    return {source_, begin, std::min(begin + 1, static_cast<std::uint32_t>(text_.size()))};
  }
  /// From the place to the next blank.
  Span word(const YAML::Mark& mark) const {
    Span span = at(mark);
    span.end =
        static_cast<std::uint32_t>(std::min(text_.find_first_of(" \t\r\n,]}", span.begin), text_.size()));
    return span;
  }
  Span scalar_span(const YAML::Mark& mark, const std::string& value) const {
    Span span = at(mark);
    std::size_t begin = span.begin;
    // Properties (`&anchor`, `!tag`) may stand before the scalar; the mark is theirs.
    while (begin < text_.size() && (text_[begin] == '&' || text_[begin] == '!')) {
      begin = std::min(text_.find_first_of(" \t\r\n", begin), text_.size());
      begin = std::min(text_.find_first_not_of(" \t\r\n", begin), text_.size());
    }
    span.begin = static_cast<std::uint32_t>(begin);
    std::size_t end = begin;
    if (begin < text_.size() && (text_[begin] == '"' || text_[begin] == '\'')) {
      const char quote = text_[begin];
      for (end = begin + 1; end < text_.size(); ++end) {
        const bool escapes = quote == '"' ? text_[end] == '\\' : text_.substr(end, 2) == "''";
        if (escapes)
          ++end;
        else if (text_[end] == quote)
          break;
      }
      // yaml-cpp takes the end of the text for the closing quote.
      if (end >= text_.size()) stop("the quote is not closed", {source_, span.begin, span.begin + 1});
      end = std::min(end + 1, text_.size());
    } else if (text_.substr(begin).starts_with(value)) {
      end = begin + value.size();
    } else if (begin < text_.size() && (text_[begin] == '|' || text_[begin] == '>')) {  // block scalars
      end = std::min(text_.find_first_of(" \t\r\n", begin), text_.size());
    } else {  // scalars folded over lines: the first one
      end = std::min(text_.find_first_of("\r\n", begin), text_.size());
    }
    span.end = static_cast<std::uint32_t>(end);
    return span;
  }

  static std::size_t depth(const SyntaxNode& node) {
    std::size_t deepest = 0;
    for (const SyntaxNode& item : node.items) deepest = std::max(deepest, depth(item));
    for (const SyntaxEntry& entry : node.entries) deepest = std::max(deepest, depth(entry.value));
    return node.kind == SyntaxNode::Kind::scalar ? 0 : deepest + 1;
  }
  void count(const SyntaxNode& node) {
    if (++nodes_ > kMaxNodes)
      stop(fmt::format("the text expands to more than {} values", kMaxNodes), node.span);
    for (const SyntaxNode& item : node.items) count(item);
    for (const SyntaxEntry& entry : node.entries) count(entry.value);
  }

  void open(SyntaxNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (frames_.size() >= kMaxDepth) stop(too_deep(), at(mark));
    Frame frame;
    frame.node.kind = kind;
    frame.node.span = at(mark);
    frame.anchor = anchor;
    frames_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    // The collection ends where its last part ends, or at its closing bracket.
    Span& span = frame.node.span;
    for (const SyntaxNode& item : frame.node.items) span.end = std::max(span.end, item.span.end);
    for (const SyntaxEntry& entry : frame.node.entries)
      span.end = std::max(span.end, std::max(entry.value.span.end, entry.key_span.end));
    if (span.begin < text_.size() && (text_[span.begin] == '[' || text_[span.begin] == '{')) {
      const char closing = text_[span.begin] == '[' ? ']' : '}';
      const std::size_t found = text_.find(closing, std::max(span.end - 1, span.begin + 1));
      if (found != std::string_view::npos) span.end = static_cast<std::uint32_t>(found + 1);
    }
    if (frame.has_duplicates) {  // the last one holds
      std::set<std::string> seen;
      std::vector<SyntaxEntry>& entries = frame.node.entries;
      for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
        if (!seen.insert(entry->key).second) entry->key_span = Span{};
      }
      std::erase_if(entries, [](const SyntaxEntry& entry) { return !entry.key_span.exists(); });
    }
    for (SyntaxNode& merged : frame.merges) {
      for (SyntaxEntry& entry : merged.entries) {
        if (frame.keys.emplace(entry.key, true).second) frame.node.entries.push_back(std::move(entry));
      }
    }
    add(std::move(frame.node), frame.anchor);
  }

  void add(SyntaxNode node, YAML::anchor_t anchor) {
    if (++nodes_ > kMaxNodes)
      stop(fmt::format("the text expands to more than {} values", kMaxNodes), node.span);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == SyntaxNode::Kind::list) {
      frame.node.items.push_back(std::move(node));
      return;
    }
    if (!frame.has_key) {
      if (node.kind != SyntaxNode::Kind::scalar) stop("a key must be a scalar", node.span);
      frame.key = node.scalar.kind() == Value::Kind::string
                      ? node.scalar.string()
                      : std::string(text_.substr(node.span.begin, node.span.end - node.span.begin));
      frame.key_span = node.span;
      frame.has_key = true;
      if (frame.key != "<<" && !frame.keys.emplace(frame.key, false).second) {
        std::string message = fmt::format("the key `{}` stands twice in this mapping", frame.key);
        if (duplicates_ == nullptr) stop(std::move(message), node.span);
        duplicates_->push_back({message + "; the last one holds", node.span, {}});
        frame.has_duplicates = true;
      }
      return;
    }
    frame.has_key = false;
    if (frame.key == "<<") {
      if (node.kind == SyntaxNode::Kind::table) {
        frame.merges.push_back(std::move(node));
      } else if (node.kind == SyntaxNode::Kind::list &&
                 std::all_of(node.items.begin(), node.items.end(),
                             [](const SyntaxNode& item) { return item.kind == SyntaxNode::Kind::table; })) {
        for (SyntaxNode& item : node.items) frame.merges.push_back(std::move(item));
      } else {
        stop("`<<` merges a mapping or a list of mappings", frame.key_span);
      }
      return;
    }
    frame.node.entries.push_back({frame.key, frame.key_span, std::move(node)});
  }

  SourceId source_;
  std::string_view text_;
  std::vector<SyntaxProblem>* duplicates_;
  YamlScalars scalars_;
  std::size_t bom_ = 0;
  int documents_ = 0;
  std::size_t nodes_ = 0;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, SyntaxNode> anchors_;
  std::optional<SyntaxNode> root_;
};

/// Which tabs in the indentation are refused. Behind blanks they are legal inside block scalars, so that they
/// count only once the parser has failed.
enum class Tabs { allowed, at_line_start, nowhere };

/// A NUL byte ends yaml-cpp's input silently, and what is no UTF-8 becomes other text; a tab in the
/// indentation confuses its messages.
std::optional<SyntaxProblem> find_bad_text(SourceId source, std::string_view text, Tabs tabs) {
  const auto at = [&](std::size_t place) {
    return Span{source, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place + 1)};
  };
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return SyntaxProblem{"a NUL byte stands in the text; this looks like a binary file", at(nul), {}};
  }
  if (const auto bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    return SyntaxProblem{
        fmt::format("byte 0x{:02X} is no valid UTF-8 here", static_cast<unsigned char>(text[bad])),
        at(bad),
        {}};
  }
  if (tabs == Tabs::allowed) return std::nullopt;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t first = std::min(text.find_first_not_of(' ', begin), text.size());
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (first < end && text[first] == '\t' && (tabs == Tabs::nowhere || first == begin)) {
      const std::size_t content = text.find_first_not_of(" \t\r", first);
      if (content < end && text[content] != '#') {
        return SyntaxProblem{"a tab stands in the indentation; YAML allows blanks only", at(first), {}};
      }
    }
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::optional<SyntaxNode> parse_yaml(SourceId source, const SourceMap& sources, SyntaxProblem& problem,
                                     std::vector<SyntaxProblem>* duplicates, YamlScalars scalars) {
  const std::string_view text = sources[source].bytes();
  const std::size_t content = text.find_first_not_of(" \t\r\n", byte_order_mark_size(text));
  // Between brackets, as in JSON, blanks of any kind mean nothing.
  const bool is_flow = content != std::string_view::npos && (text[content] == '{' || text[content] == '[');
  if (auto bad = find_bad_text(source, text, is_flow ? Tabs::allowed : Tabs::at_line_start)) {
    problem = std::move(*bad);
    return std::nullopt;
  }
  TreeBuilder builder(source, text, duplicates, scalars);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop& stop) {
    problem = stop.problem;
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    if (auto bad = find_bad_text(
            source, text.substr(0, text.find('\n', static_cast<std::size_t>(std::max(error.mark.pos, 0)))),
            is_flow ? Tabs::allowed : Tabs::nowhere)) {
      problem = std::move(*bad);
      return std::nullopt;
    }
    const std::size_t offset =
        std::min<std::size_t>(static_cast<std::size_t>(std::max(error.mark.pos, 0)), text.size());
    const auto begin = static_cast<std::uint32_t>(offset);
    problem = {error.msg,
               {source, begin, static_cast<std::uint32_t>(std::min<std::size_t>(offset + 1, text.size()))},
               {}};
    return std::nullopt;
  }
  return builder.take();
}

}  // namespace capstan

// The `extends` chain of a checked file.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "compiler/config/compose.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

constexpr std::size_t kMaxDepth = 16;
/// Bounds the work when many files extend many files.
constexpr std::size_t kMaxLayers = 256;

struct DiskReader : FileReader {
  std::optional<std::string> read(const std::string& path, ReadFailure& failure) const override {
    return read_text_file(path, failure);
  }
};

/// Lexical: "a/./b" and "a/c/../b" are the same file in a chain. Links are not followed.
std::string normal_path(std::string_view path) {
  std::vector<std::string_view> parts;
  const bool absolute = path.starts_with('/');
  while (!path.empty()) {
    const auto slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..")
      parts.pop_back();
    else if (part != ".." || !absolute)
      parts.push_back(part);
  }
  std::string normal = absolute ? "/" : "";
  for (const std::string_view part : parts) {
    if (!normal.empty() && normal.back() != '/') normal += '/';
    normal += part;
  }
  return normal.empty() ? "." : normal;
}

std::string relative_to(const std::string& naming_file, const std::string& target) {
  if (target.starts_with('/')) return normal_path(target);
  const auto slash = naming_file.rfind('/');
  return normal_path(slash == std::string::npos ? target : naming_file.substr(0, slash + 1) + target);
}

class LayerLoader {
 public:
  LayerLoader(SourceMap& sources, const FileReader& reader, Sink& sink)
      : sources_(sources), reader_(reader), sink_(sink) {}

  /// Adds what `file` extends, then `file`. False after a problem was reported.
  bool load(SourceId file, OriginKind kind) {
    chain_.push_back({file, normal_path(sources_[file].name())});
    SyntaxProblem problem;
    std::optional<SyntaxNode> tree = parse_toml(file, sources_, problem);
    if (!tree) {
      sink_.problem("SY001", std::move(problem.message), problem.where);
      chain_.pop_back();
      return false;
    }
    bool ok = true;
    const auto extends = std::find_if(tree->entries.begin(), tree->entries.end(),
                                      [](const SyntaxEntry& entry) { return entry.key == "extends"; });
    if (extends != tree->entries.end()) {
      const SyntaxNode node = std::move(extends->value);
      tree->entries.erase(extends);
      ok = load_named(file, node);
    }
    Layer layer;
    layer.tree = std::move(*tree);
    layer.kind = kind;
    layer.source = file;
    layers_.push_back(std::move(layer));
    chain_.pop_back();
    return ok;
  }

  std::vector<Layer> take() { return std::move(layers_); }

 private:
  struct Link {
    SourceId source;
    std::string path;
  };

  bool load_named(SourceId file, const SyntaxNode& node) {
    const auto is_text = [](const SyntaxNode& item) {
      return item.kind == SyntaxNode::Kind::scalar && item.scalar.kind() == Value::Kind::string;
    };
    if (is_text(node)) return load_target(file, node);
    if (node.kind != SyntaxNode::Kind::list) {
      sink_.problem("SY004", "`extends` must be a file name or a list of file names", node.span);
      return false;
    }
    if (node.items.size() > kMaxLayers) {
      sink_.problem(
          "SY004",
          fmt::format("`extends` names {} files; at most {} can take part", node.items.size(), kMaxLayers),
          node.span);
      return false;
    }
    bool ok = true;
    for (const SyntaxNode& item : node.items) {
      if (is_text(item)) {
        ok = load_target(file, item) && ok;
      } else {
        sink_.problem("SY004", "`extends` must be a list of file names", item.span);
        ok = false;
      }
    }
    return ok;
  }

  bool load_target(SourceId file, const SyntaxNode& name) {
    if (name.scalar.string().empty()) {
      sink_.problem("SY004", "a name in `extends` is empty; needs the name of a file", name.span);
      return false;
    }
    const std::string path = relative_to(sources_[file].name(), name.scalar.string());
    const auto earlier =
        std::find_if(chain_.begin(), chain_.end(), [&](const Link& link) { return link.path == path; });
    if (earlier != chain_.end()) {
      report_cycle(earlier, path, name.span);
      return false;
    }
    if (chain_.size() > kMaxDepth || layers_.size() >= kMaxLayers) {
      sink_.problem("SY004",
                    chain_.size() > kMaxDepth ? fmt::format("`extends` goes deeper than {} files", kMaxDepth)
                                              : fmt::format("more than {} files take part", kMaxLayers),
                    name.span);
      return false;
    }
    ReadFailure failure;
    std::optional<std::string> text = reader_.read(path, failure);
    if (!text) {
      sink_.problem("SY002", fmt::format("cannot read `{}`: {}", path, failure.reason), name.span);
      return false;
    }
    return load(sources_.add(path, std::move(*text), SourceKind::file), OriginKind::extended_file);
  }

  void report_cycle(std::vector<Link>::const_iterator first, const std::string& path, Span where) {
    std::string chain;
    for (auto link = first; link != chain_.end(); ++link) chain += fmt::format("`{}` extends ", link->path);
    sink_.problem("SY003", fmt::format("files extend each other in a circle: {}`{}`", chain, path), where);
  }

  SourceMap& sources_;
  const FileReader& reader_;
  Sink& sink_;
  std::vector<Link> chain_;
  std::vector<Layer> layers_;
};

}  // namespace

const FileReader& disk_reader() {
  static const DiskReader reader;
  return reader;
}

std::optional<std::vector<Layer>> load_layers(SourceId file, SourceMap& sources, const FileReader& reader,
                                              Sink& sink) {
  LayerLoader loader(sources, reader, sink);
  if (!loader.load(file, OriginKind::file)) return std::nullopt;
  return loader.take();
}

}  // namespace capstan

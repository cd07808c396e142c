#include "compiler/fixes/capture_spelling.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "grammar/source/comma_words.h"

namespace capstan {
namespace {

constexpr std::string_view kImpl = "model.cuda_graph_impl";
constexpr std::string_view kScope = "model.cuda_graph_scope";
constexpr std::string_view kModules = "model.cuda_graph_modules";
constexpr std::string_view kInference = "model.inference_cuda_graph_scope";
constexpr std::string_view kEnable = "model.enable_cuda_graph";
constexpr std::string_view kExternal = "model.external_cuda_graph";
constexpr std::array kKeys = {kImpl, kScope, kModules, kInference, kEnable, kExternal};

/// Source: megatron/core/transformer/transformer_config.py of each release, cuda_graph_config.py from 0.18.
enum class Dialect {
  switches,  ///< `enable_cuda_graph`, `external_cuda_graph`; one scope; up to 0.14
  scope,     ///< `cuda_graph_impl`; one scope: full, attn or full_iteration; 0.15
  scopes,    ///< a list; empty: the whole layer; from 0.16 on
  modules    ///< `cuda_graph_modules`, implementation `full_iteration`, scope of inference; from 0.18 on
};

Dialect dialect_of(const Version& core) {
  if (core < Version{0, 15}) return Dialect::switches;
  if (core < Version{0, 16, 0, -1}) return Dialect::scope;
  return core < Version{0, 18} ? Dialect::scopes : Dialect::modules;
}

/// "attn" of "CudaGraphScope.attn", which names a member as Python code does.
std::string_view member(std::string_view word) {
  return word.substr(word.rfind('.') + 1);
}

std::optional<std::vector<std::string>> words_of(const Value& value) {
  std::vector<std::string> words;
  if (value.kind() == Value::Kind::string) return comma_words(value.string());
  if (value.kind() != Value::Kind::list) return std::nullopt;
  for (const Value& item : value.list()) {
    if (item.kind() != Value::Kind::string) return std::nullopt;
    words.push_back(item.string());
  }
  return words;
}

std::string in_quotes(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "`" : ", `") + word + "`";
  return out;
}

/// What is asked for, whatever the words.
struct Capture {
  std::string impl = "none";  ///< none, local, transformer_engine
  bool full_iteration = false;
  std::vector<std::string> modules;  ///< empty: the whole layer
  bool stated = false;               ///< that which graphs cover
  bool inference_block = false;      ///< one graph for a whole step of inference
  std::vector<std::string> idle;     ///< words that have no effect
};

class Respeller {
 public:
  Respeller(const Config& config, const Version& from, const Stack& to, const Version& to_core)
      : config_(config), from_(from), to_(to), core_(to_core), dialect_(dialect_of(to_core)) {
    if (find(kModules) != nullptr || find(kInference) != nullptr || impl_is("full_iteration"))
      read_as_ = Dialect::modules;
    else
      read_as_ = dialect_of(from);
  }

  CaptureRespelling run() {
    const bool unusual = std::any_of(kKeys.begin(), kKeys.end(), [&](std::string_view key) {
      const Setting* setting = config_.find(key);
      return setting != nullptr && (setting->value == Value("?") || !setting->unsupported.empty());
    });
    if (unusual || same_words() || !read()) return {};
    write();
    if (changes_.empty()) return std::move(out_);
    out_.steps.push_back({reason(), std::move(changes_)});
    return std::move(out_);
  }

 private:
  const Setting* find(std::string_view path) const {
    const Setting* setting = config_.find(path);
    return setting == nullptr || setting->value.is_none() ? nullptr : setting;
  }
  bool impl_is(std::string_view name) const {
    const Setting* impl = find(kImpl);
    return impl != nullptr && impl->value == Value(std::string(name));
  }
  static bool is_on(const Setting* setting) { return setting != nullptr && setting->value == Value(true); }

  /// Both releases read every key that is there alike, and the new one under its own name.
  bool same_words() const {
    if (read_as_ != dialect_) return false;
    if (dialect_ == Dialect::modules)
      return find(kScope) == nullptr && find(kEnable) == nullptr && find(kExternal) == nullptr;
    const bool fewer_words = core_ < Version{0, 17} && !(from_ < Version{0, 17});
    const bool needs_list = core_ < Version{0, 16} && !(from_ < Version{0, 16});
    return dialect_ != Dialect::scopes || (!fewer_words && !needs_list);
  }

  /// False where the old release refuses the combination, or where it is no list of words.
  bool read() {
    const Setting* impl = find(kImpl);
    if (impl != nullptr) {
      if (impl->value.kind() != Value::Kind::string) return false;
      asked_.impl = impl->value.string();
    }
    if (is_on(find(kEnable)) || is_on(find(kExternal))) {
      if (asked_.impl != "none" || (is_on(find(kEnable)) && is_on(find(kExternal)))) return false;
      asked_.impl = is_on(find(kEnable)) ? "local" : "transformer_engine";
    }
    if (asked_.impl == "full_iteration") {
      asked_.impl = "local";
      asked_.full_iteration = true;
    }
    if (asked_.impl != "none" && asked_.impl != "local" && asked_.impl != "transformer_engine") return false;
    const Setting* stated = find(kScope);
    if (const Setting* modules = find(kModules); modules != nullptr) {
      if (stated != nullptr) return false;
      stated = modules;
    }
    return (stated == nullptr || read_words(*stated)) && read_inference();
  }

  bool read_words(const Setting& stated) {
    const auto words = words_of(stated.value);
    if (!words) return false;
    asked_.stated = true;
    if (std::any_of(words->begin(), words->end(), [](const auto& word) { return member(word) == "full"; }))
      return words->size() == 1 && !asked_.full_iteration;
    if (asked_.full_iteration) return words->empty();
    bool whole = false;
    bool inference = false;
    for (const std::string& word : *words) {
      if (member(word) == "full_iteration")
        whole = true;
      else if (member(word) == "full_iteration_inference")
        inference = true;
      else
        asked_.modules.push_back(word);
    }
    if ((whole || inference) && asked_.impl == "transformer_engine") return false;
    if (read_as_ == Dialect::modules) return read_deprecated_words(whole, inference);
    if (asked_.impl == "none") {
      // Without an implementation no scope captures anything; 0.18 would switch graphs on by this word.
      if (whole) asked_.idle.push_back("full_iteration");
      if (inference) asked_.idle.push_back("full_iteration_inference");
      return true;
    }
    asked_.full_iteration = whole;
    asked_.inference_block = inference;
    if (whole) {  // per-layer graphs are only made without it
      asked_.idle = std::move(asked_.modules);
      asked_.modules.clear();
    }
    return true;
  }

  /// 0.18 turns the word into an implementation, whatever that was.
  bool read_deprecated_words(bool whole, bool inference) {
    if ((whole && inference) || (whole && !asked_.modules.empty())) return false;
    if (whole) {
      asked_.impl = "local";
      asked_.full_iteration = true;
    }
    if (inference && asked_.impl == "none") asked_.idle.push_back("full_iteration_inference");
    asked_.inference_block = inference && asked_.impl == "local";
    return true;
  }

  bool read_inference() {
    const Setting* setting = find(kInference);
    if (setting == nullptr) return true;
    if (setting->value.kind() != Value::Kind::string) return false;
    const std::string_view scope = member(setting->value.string());
    const bool local = asked_.impl == "local" && !asked_.full_iteration;
    if (local ? scope != "layer" && scope != "block" : scope != "none") return false;
    asked_.inference_block = scope == "block";
    return true;
  }

  void write() {
    write_impl();
    const std::vector<std::string> words = wanted_words();
    const std::string_view list = dialect_ == Dialect::modules ? kModules : kScope;
    const std::string_view other = dialect_ == Dialect::modules ? kScope : kModules;
    const Setting* stated = find(list) != nullptr ? find(list) : find(other);
    if (stated == nullptr) {
      if (!words.empty()) set(list, listed(words, nullptr));
    } else {
      if (stated->path == other) rename(other, list);
      if (sayable_ && !readable_as(stated->value, words)) set(list, listed(words, stated));
    }
    write_inference();
  }

  void write_impl() {
    const std::string_view flag = asked_.impl == "local" ? kEnable : kExternal;
    if (dialect_ == Dialect::switches) {
      if (find(kImpl) == nullptr) return;
      if (asked_.impl == "none")
        return changes_.push_back({KeyChange::Kind::unset, std::string(kImpl), {}, {}, true});
      if (config_.find(flag) == nullptr)
        rename(kImpl, flag);
      else
        changes_.push_back({KeyChange::Kind::unset, std::string(kImpl), {}, {}, true});
      return set(flag, true);
    }
    const std::string name =
        asked_.full_iteration && dialect_ == Dialect::modules ? "full_iteration" : asked_.impl;
    if (is_on(find(flag)) && asked_.impl != "none") {
      // The old switch gives its place to the key.
      if (config_.find(kImpl) == nullptr)
        rename(flag, kImpl);
      else
        changes_.push_back({KeyChange::Kind::unset, std::string(flag), {}, {}, true});
      return set(kImpl, name);
    }
    if (!impl_is(name) && (find(kImpl) != nullptr || name != "none")) set(kImpl, name);
  }

  /// The words of the list in the new release.
  std::vector<std::string> wanted_words() {
    std::vector<std::string> words = asked_.modules;
    if (!asked_.idle.empty()) {
      const std::string why = asked_.impl == "none" ? "without an implementation" : "beside `full_iteration`";
      idle_ = fmt::format("{} had no effect {}", in_quotes(asked_.idle), why);
    }
    if (dialect_ == Dialect::modules) {
      for (std::string& word : words) {
        if (word.starts_with("CudaGraphScope.")) word.replace(0, 14, "CudaGraphModule");
      }
      return words;
    }
    for (std::string& word : words) {
      if (core_ < Version{0, 16})  // no enumeration yet
        word = member(word);
      else if (word.starts_with("CudaGraphModule."))
        word.replace(0, 15, "CudaGraphScope");
    }
    if (asked_.full_iteration) words = {"full_iteration"};
    if (asked_.inference_block) {
      if (core_ < Version{0, 17})
        out_.lost.push_back(
            fmt::format("{} has no graphs of inference alone: `{}` goes without a counterpart", to_.name,
                        find(kInference) != nullptr ? "inference_cuda_graph_scope = \"block\""
                                                    : "full_iteration_inference"));
      else
        words.emplace_back("full_iteration_inference");
      has_inference_word_ = !words.empty() && words.back() == "full_iteration_inference";
    }
    if (dialect_ == Dialect::scopes) return words;
    // One scope is all that these releases take.
    if (words.empty() && asked_.stated) words = {"full"};
    const auto foreign = [](const std::string& word) {
      return word != "full" && word != "attn" && word != "full_iteration";
    };
    sayable_ = words.size() <= 1 && std::none_of(words.begin(), words.end(), foreign);
    if (!sayable_)
      out_.lost.push_back(fmt::format("{} captures one scope, `full`, `attn` or `full_iteration`, not {}",
                                      to_.name, in_quotes(words)));
    return words;
  }

  void write_inference() {
    const Setting* setting = find(kInference);
    if (dialect_ == Dialect::modules) {
      if (asked_.inference_block && asked_.full_iteration)
        out_.lost.push_back(
            fmt::format("{} has no graphs of inference beside the full iteration: `full_iteration_inference` "
                        "goes without "
                        "a counterpart",
                        to_.name));
      else if (asked_.inference_block && setting == nullptr)
        set(kInference, "block");
    } else if (setting != nullptr) {
      changes_.push_back({KeyChange::Kind::unset, std::string(kInference), {}, {}, true});
    }
  }

  /// Whether the new release reads these words from the value as it is written.
  bool readable_as(const Value& value, const std::vector<std::string>& words) const {
    const auto present = words_of(value);
    if (!present || *present != words) {
      // An empty list was `full`, which 0.16 and 0.17 still read when they were given a list before.
      const bool full = present && present->size() == 1 && (*present)[0] == "full" && words.empty();
      return full && dialect_ == Dialect::scopes && read_as_ == Dialect::modules && !(core_ < Version{0, 16});
    }
    if (dialect_ == Dialect::switches || dialect_ == Dialect::scope)
      return value.kind() == Value::Kind::string;
    if (dialect_ == Dialect::scopes && core_ < Version{0, 16})
      return value.kind() == Value::Kind::list || words.size() == 1;
    return true;
  }

  Value listed(const std::vector<std::string>& words, const Setting* stated) const {
    const bool one = dialect_ == Dialect::switches || dialect_ == Dialect::scope;
    if (one && words.size() == 1) return Value(words[0]);
    // A string stays one where it holds something.
    const bool string = stated != nullptr && stated->value.kind() == Value::Kind::string;
    if (string && words.size() == 1) return Value(words[0]);
    Value::List list;
    for (const std::string& word : words) list.emplace_back(word);
    return Value(std::move(list));
  }

  std::string reason() const {
    std::string out;
    const auto add = [&](const std::string& clause) { out += (out.empty() ? "" : "; ") + clause; };
    for (const KeyChange& change : changes_) {
      if (change.kind == KeyChange::Kind::rename)
        add(fmt::format("`{}` is called `{}` in {}", change.path, change.new_path, to_.name));
    }
    const auto sets = [&](std::string_view path) {
      return std::any_of(changes_.begin(), changes_.end(), [&](const KeyChange& change) {
        return change.kind == KeyChange::Kind::set && change.path == path;
      });
    };
    if (asked_.full_iteration && sets(kImpl))
      add(dialect_ == Dialect::modules
              ? "capture of the full iteration is an implementation of its own, with an empty list of modules"
              : "capture of the full iteration is a scope of `local`");
    else if (asked_.full_iteration && dialect_ == Dialect::switches)
      add("capture of the full iteration is a scope of `enable_cuda_graph`");
    else if (sets(kScope) || sets(kModules)) {
      if (wants_whole_layer())
        add(dialect_ == Dialect::scopes || dialect_ == Dialect::modules
                ? "the whole layer is an empty list"
                : "the whole layer is the scope `full`");
      else if (has_inference_word_)
        add("graphs of a whole step of inference are the scope `full_iteration_inference`");
      else if (dialect_ == Dialect::switches || dialect_ == Dialect::scope)
        add("the scope is one word");
      else if (asked_.inference_block && dialect_ == Dialect::scopes)
        add(fmt::format("`full_iteration_inference` is no scope in {}", to_.name));
      else if (idle_.empty())
        add("the scopes are a list");
    }
    if (sets(kInference)) add("`full_iteration_inference` is `inference_cuda_graph_scope = \"block\"`");
    for (const KeyChange& change : changes_) {
      if (change.kind != KeyChange::Kind::unset) continue;
      if (change.path == kInference && !asked_.inference_block)
        add(fmt::format("`{}` says what holds without it", change.path));
      if (change.path == kImpl && asked_.impl == "none") add("without a switch nothing is captured");
    }
    if (!idle_.empty()) add(idle_);
    return out.empty() ? fmt::format("CUDA graph capture in the words of {}", to_.name) : out;
  }
  bool wants_whole_layer() const {
    return asked_.modules.empty() && !asked_.full_iteration && !asked_.inference_block && idle_.empty();
  }

  void set(std::string_view path, Value value) {
    changes_.push_back({KeyChange::Kind::set, std::string(path), std::move(value), {}});
  }
  void rename(std::string_view path, std::string_view other) {
    changes_.push_back({KeyChange::Kind::rename, std::string(path), {}, std::string(other)});
  }

  const Config& config_;
  const Version from_;
  const Stack& to_;
  const Version core_;
  Dialect dialect_, read_as_ = Dialect::scopes;
  Capture asked_;
  std::string idle_;
  bool sayable_ = true;              ///< the new release has words for the scopes
  bool has_inference_word_ = false;  ///< and they are those of `full_iteration_inference`
  std::vector<KeyChange> changes_;
  CaptureRespelling out_;
};

}  // namespace

CaptureRespelling respell_capture(const Config& config, const Stack& from, const Stack& to) {
  const Version* old_core = from.version_of("megatron-core");
  const Version* new_core = to.version_of("megatron-core");
  if (old_core == nullptr || new_core == nullptr) return {};
  return Respeller(config, *old_core, to, *new_core).run();
}

bool asks_for_capture(std::string_view path) {
  return std::find(kKeys.begin(), kKeys.end(), path) != kKeys.end();
}

}  // namespace capstan

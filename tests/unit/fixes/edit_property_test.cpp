// Edits of random TOML texts in many layouts: the result parses, has exactly the wanted values, and keeps
// every line and comment that the changed key has no part in; made twice they change nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "compiler/fixes/apply.h"
#include "compiler/fixes/edit.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

class RandomText {
 public:
  explicit RandomText(unsigned seed) : random_(seed) {}
  unsigned below(std::size_t bound) { return static_cast<unsigned>(random_() % bound); }

  std::string next() {
    newline_ = below(3) == 0 ? "\r\n" : "\n";
    std::string text = "# head" + newline_;
    std::string tables;
    for (const char* section : {"alpha", "beta", "gamma"}) {
      const unsigned style = below(4);
      const unsigned keys = 1 + below(4);
      if (style == 0) {  // dotted, before the first header
        for (unsigned i = 0; i < keys; ++i)
          text += std::string(section) + "." + key(i) + " = " + value(true) + comment() + newline_;
      } else if (style == 1) {
        text += std::string(section) + " = " + (below(2) == 0 ? "{ " : "{");
        for (unsigned i = 0; i < keys; ++i) text += (i > 0 ? ", " : "") + key(i) + " = " + value(false);
        text += (below(2) == 0 ? " }" : "}") + comment() + newline_;
      } else {
        const std::string indent = below(4) == 0 ? "  " : "";
        tables += (below(2) == 0 ? newline_ : "") + "[" + section + "]" + comment() + newline_;
        for (unsigned i = 0; i < keys; ++i) {
          if (below(4) == 0) tables += indent + "# between " + std::to_string(comments_++) + newline_;
          tables += indent + key(i) + (below(4) == 0 ? "=" : " = ") + value(true) + comment() + newline_;
        }
      }
    }
    text += tables;
    if (below(4) == 0) text.resize(text.size() - newline_.size());
    return text;
  }

 private:
  static std::string key(unsigned i) { return std::string("key") + static_cast<char>('a' + i); }
  std::string comment() { return below(3) == 0 ? "  # why " + std::to_string(comments_++) : ""; }
  std::string word() {
    const std::string text(1, static_cast<char>('p' + below(6)));
    return below(3) == 0 ? "'" + text + "'" : "\"" + text + "\"";
  }
  std::string value(bool may_span_lines) {
    switch (below(5)) {
      case 0:
        return std::to_string(below(100));
      case 1:
        return below(2) == 0 ? "true" : "false";
      case 2:
        return word();
      default: {
        std::vector<std::string> words;
        std::set<char> seen;
        for (unsigned i = below(5); i-- > 0;) {
          const std::string one = word();
          if (seen.insert(one[1]).second) words.push_back(one);
        }
        const bool lines = may_span_lines && below(2) == 0;
        std::string out = "[";
        if (lines && below(3) == 0) out += "  # opening " + std::to_string(comments_++);
        for (std::size_t i = 0; i < words.size(); ++i) {
          const bool comma = i + 1 < words.size() || (lines && below(2) == 0);
          if (lines)
            out += newline_ + "    " + words[i] + (comma ? "," : "") + comment();
          else
            out += (i > 0 ? " " : "") + words[i] + (comma ? "," : "");
        }
        return out + (lines ? newline_ : "") + "]";
      }
    }
  }

  std::mt19937 random_;
  std::string newline_ = "\n";
  unsigned comments_ = 0;
};

struct Document {
  SourceMap sources;
  Config config;
  bool parses = false;

  explicit Document(const std::string& text) {
    const SourceId source = sources.add("a.toml", text, SourceKind::file);
    SyntaxProblem problem;
    const auto tree = parse_toml(source, sources, problem);
    if (!tree) return;
    parses = true;
    config.files.push_back(source);
    flatten(*tree, "");
  }

  std::map<std::string, Value> values() const {
    std::map<std::string, Value> out;
    for (const auto& [path, setting] : config.settings) out[path] = setting.value;
    return out;
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const auto& [path, setting] : config.settings) out.push_back(path);
    return out;
  }

 private:
  void flatten(const SyntaxNode& table, const std::string& prefix) {
    for (const SyntaxEntry& entry : table.entries) {
      const std::string path = prefix + entry.key;
      if (entry.value.kind == SyntaxNode::Kind::table) {
        flatten(entry.value, path + ".");
        continue;
      }
      Setting& setting = config.settings[path];
      setting.path = path;
      setting.value = to_value(entry.value);
      setting.origin = {OriginKind::file, entry.key_span, entry.value.span};
      for (const SyntaxNode& item : entry.value.items) setting.items.push_back(item.span);
    }
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

TEST(EditProperty, ChangesWhatIsMeantAndNothingElse) {
  RandomText random(17);
  std::size_t changed = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = random.next();
    const Document before(text);
    ASSERT_TRUE(before.parses) << text;
    const std::vector<std::string> paths = before.paths();
    KeyChange change;
    change.path = paths[random.below(paths.size())];
    const Value word(std::string(1, static_cast<char>('p' + random.below(8))));
    switch (random.below(6)) {
      case 0:
        change.kind = KeyChange::Kind::unset;
        break;
      case 1:
        change.kind = KeyChange::Kind::add;
        change.value = word;
        break;
      case 2:
        change.kind = KeyChange::Kind::remove;
        change.value = word;
        break;
      case 3:
        change.path = change.path.substr(0, change.path.find('.')) + ".new_key";
        change.value = random.below(2) == 0 ? Value(7) : word;
        break;
      case 4:
        change.value = Value(Value::List{word, Value("z")});
        break;
      default:
        change.value = random.below(2) == 0 ? Value(7) : word;
    }
    std::map<std::string, Value> expected = before.values();
    const bool has = expected.contains(change.path);
    const bool list = has && expected[change.path].kind() == Value::Kind::list;
    if ((change.kind == KeyChange::Kind::add || change.kind == KeyChange::Kind::remove) && !list) continue;
    switch (change.kind) {
      case KeyChange::Kind::unset:
        expected.erase(change.path);
        break;
      case KeyChange::Kind::add:
        expected[change.path] = with_element(expected[change.path], change.value);
        break;
      case KeyChange::Kind::remove:
        expected[change.path] = without_element(expected[change.path], change.value);
        break;
      default:
        expected[change.path] = change.value;
    }
    const EditPlan plan = plan_edits({change}, before.config, before.sources);
    ASSERT_TRUE(plan.complete());
    const auto result = apply_edits(text, plan.edits);
    ASSERT_TRUE(result) << text;
    const Document after(*result);
    ASSERT_TRUE(after.parses) << text << "\n--- " << change.path << "\n" << *result;
    EXPECT_EQ(after.values(), expected) << text << "\n--- " << change.path << "\n" << *result;
    EXPECT_TRUE(plan_edits({change}, after.config, after.sources).edits.empty()) << *result;
    // Lines that the key has no part in stay, in their order.
    std::set<std::size_t> own;
    if (has) {
      const Origin& origin = before.config.settings.at(change.path).origin;
      const auto first =
          static_cast<std::size_t>(std::count(text.begin(), text.begin() + origin.key.begin, '\n'));
      const auto last =
          static_cast<std::size_t>(std::count(text.begin(), text.begin() + origin.value.end, '\n'));
      for (std::size_t line = first; line <= last; ++line) own.insert(line);
    }
    const std::vector<std::string> old_lines = lines_of(text), new_lines = lines_of(*result);
    std::size_t at = 0;
    for (std::size_t line = 0; line < old_lines.size(); ++line) {
      if (own.contains(line)) continue;
      // A new key of an inline table stands in its line.
      const bool is_inline = !has && old_lines[line].find('{') != std::string::npos;
      while (at < new_lines.size() && new_lines[at] != old_lines[line] &&
             !(is_inline && new_lines[at].find("new_key") != std::string::npos))
        ++at;
      if (at == new_lines.size()) {
        ADD_FAILURE() << "lost: " << old_lines[line] << "\n"
                      << text << "\n--- " << change.path << "\n"
                      << *result;
        break;
      }
      ++at;
    }
    if (text.find("\r\n") != std::string::npos) {
      for (std::size_t i = 0; i < result->size(); ++i) {
        if ((*result)[i] == '\n') {
          ASSERT_TRUE(i > 0 && (*result)[i - 1] == '\r') << *result;
        }
      }
    }
    changed += *result != text;
    if (HasFailure()) return;
  }
  EXPECT_GT(changed, 2000u);
}

std::multiset<std::string> comments_of(const std::string& text) {
  std::multiset<std::string> comments;
  for (const std::string& line : lines_of(text)) {
    if (const std::size_t at = line.find('#'); at != std::string::npos) comments.insert(line.substr(at));
  }
  return comments;
}

// A key that moves to another table takes its value as it is written and its comments along; no comment is
// lost or doubled, and all other lines stay.
TEST(EditProperty, MovesKeysWithTheirComments) {
  RandomText random(23);
  std::size_t with_comment = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = random.next();
    const Document before(text);
    ASSERT_TRUE(before.parses) << text;
    const std::vector<std::string> paths = before.paths();
    const std::string path = paths[random.below(paths.size())];
    const char* sections[] = {"alpha", "beta", "gamma", "delta"};
    const std::string section = sections[random.below(4)];
    if (path.starts_with(section)) continue;
    const std::string moved = section + ".moved";
    std::map<std::string, Value> expected = before.values();
    expected[moved] = expected[path];
    expected.erase(path);
    const EditPlan plan =
        plan_edits({{KeyChange::Kind::rename, path, {}, moved}}, before.config, before.sources);
    ASSERT_TRUE(plan.complete());
    const auto result = apply_edits(text, plan.edits);
    ASSERT_TRUE(result) << text << "\n--- " << path << " -> " << moved;
    const std::string shown = text + "\n--- " + path + " -> " + moved + "\n" + *result;
    const Document after(*result);
    ASSERT_TRUE(after.parses) << shown;
    EXPECT_EQ(after.values(), expected) << shown;
    EXPECT_EQ(comments_of(*result), comments_of(text)) << shown;
    const Origin& old_origin = before.config.settings.at(path).origin;
    const Origin& new_origin = after.config.settings.at(moved).origin;
    EXPECT_EQ(after.sources.text(new_origin.value), before.sources.text(old_origin.value)) << shown;
    // Where both are lines of their own: the comment lines above and the one behind stay with the key.
    const auto line_number = [](const std::string& in, std::uint32_t offset) {
      return static_cast<std::size_t>(std::count(in.begin(), in.begin() + offset, '\n'));
    };
    const std::vector<std::string> old_lines = lines_of(text), new_lines = lines_of(*result);
    const std::size_t was = line_number(text, old_origin.key.begin);
    const std::size_t is = line_number(*result, new_origin.key.begin);
    const auto behind = [](const std::string& in, std::uint32_t offset) {
      const std::size_t end = std::min(in.find_first_of("\r\n", offset), in.size());
      return in.substr(offset, end - offset);
    };
    const bool lines =
        old_lines[was].find('{') == std::string::npos && new_lines[is].find('{') == std::string::npos;
    if (lines) {
      EXPECT_EQ(behind(*result, new_origin.value.end), behind(text, old_origin.value.end)) << shown;
      for (std::size_t up = 1; up <= was; ++up) {
        const std::string& line = old_lines[was - up];
        const std::size_t mark = line.find_first_not_of(' ');
        if (mark == std::string::npos || line[mark] != '#' || line == "# head") break;
        ASSERT_GE(is, up) << shown;
        EXPECT_TRUE(new_lines[is - up].ends_with(line.substr(mark))) << shown;
        ++with_comment;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(with_comment, 100u);
}

}  // namespace
}  // namespace capstan

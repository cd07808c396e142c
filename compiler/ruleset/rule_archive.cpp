#include "compiler/ruleset/rule_archive.h"

#include <cstdint>

#include "grammar/rule/rule_binary.h"

namespace capstan {
namespace {

void append(std::string_view text, std::string& out) {
  std::uint64_t size = text.size();
  for (int byte = 0; byte < 8; ++byte, size >>= 8) out += static_cast<char>(size & 0xFF);
  out += text;
}

bool take(std::string_view& bytes, std::string_view& text) {
  if (bytes.size() < 8) return false;
  std::uint64_t size = 0;
  for (int byte = 7; byte >= 0; --byte)
    size = size << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(byte)]);
  bytes.remove_prefix(8);
  if (size > bytes.size()) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

}  // namespace

std::string encode_text_pairs(const TextPairs& pairs) {
  std::string out;
  for (const auto& [first, second] : pairs) {
    append(first, out);
    append(second, out);
  }
  return out;
}

std::optional<TextPairs> decode_text_pairs(std::string_view bytes) {
  TextPairs pairs;
  while (!bytes.empty()) {
    std::string_view first, second;
    if (!take(bytes, first) || !take(bytes, second)) return std::nullopt;
    pairs.emplace_back(first, second);
  }
  return pairs;
}

std::string encode_rule_archive(const std::vector<RuleFile>& files) {
  TextPairs pairs;
  for (const RuleFile& file : files) pairs.emplace_back(file.path, encode_binary(file.syntax));
  return encode_text_pairs(pairs);
}

std::optional<std::vector<RuleFile>> decode_rule_archive(std::string_view bytes) {
  std::vector<RuleFile> files;
  while (!bytes.empty()) {
    std::string_view path, syntax;
    if (!take(bytes, path) || !take(bytes, syntax)) return std::nullopt;
    std::optional<RuleFileSyntax> decoded = decode_binary(syntax);
    if (!decoded) return std::nullopt;
    files.push_back({std::string(path), std::move(*decoded), false});
  }
  return files;
}

}  // namespace capstan

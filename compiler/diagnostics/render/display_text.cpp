#include "compiler/diagnostics/render/display_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace capstan {
namespace {

struct Range {
  char32_t first, last;
};

// Unicode East Asian Width W and F, and emoji shown wide; sorted.
constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},   {0x23F0, 0x23F0},
    {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267F, 0x267F},
    {0x2693, 0x2693},   {0x26A1, 0x26A1},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},
    {0x26CE, 0x26CE},   {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},
    {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27B0, 0x27B0},   {0x27BF, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},
    {0x2E80, 0x303E},   {0x3041, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7EB}, {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

// Combining marks and other characters without a cell of their own; sorted.
constexpr Range kZero[] = {{0x0300, 0x036F}, {0x0483, 0x0489},  {0x0591, 0x05BD}, {0x0610, 0x061A},
                           {0x064B, 0x065F}, {0x0670, 0x0670},  {0x06D6, 0x06DC}, {0x0E31, 0x0E31},
                           {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},  {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                           {0x200B, 0x200D}, {0x20D0, 0x20FF},  {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
                           {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};

template <std::size_t size>
bool contains(const Range (&ranges)[size], char32_t code) {
  const auto after =
      std::upper_bound(std::begin(ranges), std::end(ranges), code,
                       [](char32_t wanted, const Range& range) { return wanted < range.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

struct CodePoint {
  char32_t code = 0;
  std::size_t length = 1;
  bool valid = false;
};

CodePoint decode(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1, true};
  std::size_t length = 0;
  char32_t code = 0;
  if (lead >= 0xC2 && lead <= 0xDF)
    length = 2, code = lead & 0x1Fu;
  else if (lead >= 0xE0 && lead <= 0xEF)
    length = 3, code = lead & 0x0Fu;
  else if (lead >= 0xF0 && lead <= 0xF4)
    length = 4, code = lead & 0x07u;
  if (length == 0 || at + length > text.size()) return {};
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte & 0x3Fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool legal = code >= kLeast[length] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return legal ? CodePoint{code, length, true} : CodePoint{};
}

bool is_dangerous(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x200E || code == 0x200F ||
         code == 0x2028 || code == 0x2029 || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFFFE ||
         code == 0xFFFF;  // the last two: XML has no way
}

std::string visible(char32_t code) {
  return code < 0x100 ? fmt::format("\\x{:02x}", static_cast<unsigned>(code))
                      : fmt::format("\\u{{{:x}}}", static_cast<unsigned>(code));
}

constexpr std::uint32_t kTabStop = 4;

}  // namespace

std::vector<DisplayCell> display_cells(std::string_view line, std::uint32_t max_width) {
  std::vector<DisplayCell> cells;
  std::uint32_t column = 0;
  for (std::size_t at = 0; at < line.size() && column < max_width;) {
    const CodePoint point = decode(line, at);
    DisplayCell cell{static_cast<std::uint32_t>(at), {}, 1};
    if (!point.valid) {
      cell.text = "\xEF\xBF\xBD";
    } else if (point.code == '\t') {
      cell.width = kTabStop - column % kTabStop;
      cell.text = std::string(cell.width, ' ');
    } else if (is_dangerous(point.code)) {
      cell.text = visible(point.code);
      cell.width = static_cast<std::uint32_t>(cell.text.size());
    } else {
      cell.text = std::string(line.substr(at, point.length));
      cell.width = contains(kZero, point.code) ? 0 : contains(kWide, point.code) ? 2 : 1;
    }
    column += cell.width;
    at += point.length;
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::string safe_text(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    if (!point.valid)
      out += "\xEF\xBF\xBD";
    else if (point.code == '\n')
      out += keep_lines ? '\n' : ' ';
    else if (point.code == '\t')
      out += ' ';
    else if (is_dangerous(point.code))
      out += visible(point.code);
    else
      out += text.substr(at, point.length);
    at += point.length;
  }
  return out;
}

}  // namespace capstan

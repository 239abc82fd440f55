#include "admin/html.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sluice::admin {
namespace {

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

// Not in the middle of a character of UTF-8.
std::string_view Cut(std::string_view text) {
  size_t end = kShownBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

constexpr std::string_view kMarks[] = {"ok\">● ", "note\">◆ ", "bad\">▲ ", "off\">○ "};

}  // namespace

std::string SpanText(base::Nanos span) {
  struct Unit {
    int64_t seconds;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{86'400, " d"}, {3'600, " h"}, {60, " min"}, {1, " s"}};
  int64_t left = std::chrono::duration_cast<std::chrono::seconds>(span).count();
  std::string out;
  int shown = 0;
  for (const Unit& unit : kUnits) {
    const int64_t count = left / unit.seconds;
    left -= count * unit.seconds;
    if (count == 0 && shown == 0) continue;
    if (count != 0) Append(out, out.empty() ? "" : " ", std::to_string(count), unit.name);
    if (++shown == 2) break;
  }
  return out.empty() ? "0 s" : out;
}

std::string LatencyText(base::Nanos span) {
  const double ms = std::chrono::duration<double, std::milli>(span).count();
  return ms < 1000 ? NumberText(ms) + " ms" : NumberText(ms / 1000) + " s";
}

std::string NumberText(double value) {
  if (value == 0) return "0";
  if (value < 99.95) return Format("%.*f", value >= 9.995 ? 1 : 2, value);
  return value < 1e15 ? CountText(static_cast<uint64_t>(std::llround(value))) : Format("%.0f", value);
}

std::string CountText(uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string out;
  for (size_t at = 0; at < digits.size(); ++at) {
    if (at > 0 && (digits.size() - at) % 3 == 0) out += ',';
    out += digits[at];
  }
  return out;
}

std::string BytesText(uint64_t bytes) {
  static constexpr const char* kUnits[] = {" KiB", " MiB", " GiB", " TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return NumberText(value) + kUnits[unit];
}

std::string PercentText(double share) { return Format("%.1f%%", share * 100); }

std::string Shown(std::string_view text) {
  if (text.size() <= kShownBytesMax) return EscapeHtml(text);
  return EscapeHtml(Cut(text)) + "...";
}

void Cell(std::string& out, std::string_view text) { Append(out, "<td>", Shown(text), "</td>"); }
void NumberCell(std::string& out, std::string_view text) { Append(out, "<td class=\"n\">", Shown(text), "</td>"); }

void BeginTable(std::string& out, std::string_view title, std::initializer_list<std::string_view> columns) {
  if (!title.empty()) Append(out, "<h2>", EscapeHtml(title), "</h2>\n");
  out += "<div class=\"wide\"><table>\n<thead><tr>";
  for (std::string_view column : columns) {
    const bool number = column.starts_with('#');
    if (number) column.remove_prefix(1);
    Append(out, number ? "<th class=\"n\">" : "<th>", column, "</th>");
  }
  out += "</tr></thead>\n<tbody>\n";
}

void EndTable(std::string& out) { out += "</tbody></table></div>\n"; }

std::string Marked(Mark mark, std::string_view word) {
  std::string out = "<span class=\"";
  Append(out, kMarks[static_cast<size_t>(mark)], Shown(word), "</span>");
  return out;
}

void AppendPager(std::string& out, size_t count, std::string_view what, size_t page, size_t pages,
                 std::string_view link) {
  if (pages <= 1) return;
  Append(out, "<p class=\"pager\">", CountText(count), " ", what, ", page ", std::to_string(page), " of ",
         std::to_string(pages));
  if (page > 1) Append(out, " <a href=\"", link, std::to_string(page - 1), "\">previous</a>");
  if (page < pages) Append(out, " <a href=\"", link, std::to_string(page + 1), "\">next</a>");
  out += "</p>\n";
}

PageRange::PageRange(size_t count, size_t per_page, size_t wanted)
    : pages(std::max<size_t>(1, (count + per_page - 1) / per_page)),
      page(std::clamp<size_t>(wanted, 1, pages)),
      from((page - 1) * per_page),
      to(std::min(count, from + per_page)) {}

}  // namespace sluice::admin

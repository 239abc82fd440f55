// Parts of HTML pages: cells, tables, numbers and spans of time as people read them. Values in, text out.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "admin/visible_text.h"
#include "base/clock.h"

namespace sluice::admin {

// The two largest units of a span, "0 s" for less than a second: "47 s", "12 min 3 s", "3 h 59 min", "2 d 1 h".
std::string SpanText(base::Nanos span);
// Of a call: "0.25 ms", "12.5 ms", "1.50 s".
std::string LatencyText(base::Nanos span);
// A number in three digits, or all before the point, in groups: "0", "0.25", "1.5", "12,345".
std::string NumberText(double value);
std::string CountText(uint64_t count);
// "512 B", "1.5 KiB", "64.0 MiB".
std::string BytesText(uint64_t bytes);
// A share, 0..1, in percent.
std::string PercentText(double share);

template <typename... Parts>
void Append(std::string& out, const Parts&... parts) {
  ((out += parts), ...);
}

// Escaped; what is longer than kShownBytesMax is cut, and ends in "...".
inline constexpr size_t kShownBytesMax = 160;
std::string Shown(std::string_view text);

// Cells of text that is escaped and cut.
void Cell(std::string& out, std::string_view text);
void NumberCell(std::string& out, std::string_view text);

// A title with its table: a row of column titles, of which those that begin with "#" stand above numbers.
void BeginTable(std::string& out, std::string_view title, std::initializer_list<std::string_view> columns);
void EndTable(std::string& out);

// How a thing is, without colours too: the word with a mark before it.
enum class Mark : uint8_t { kGood, kNote, kBad, kOff };
std::string Marked(Mark mark, std::string_view word);

// "1,234 endpoints, page 2 of 3: previous, next". `link`: escaped, the number of a page is put behind it. Nothing for
// one page.
void AppendPager(std::string& out, size_t count, std::string_view what, size_t page, size_t pages,
                 std::string_view link);

// Of `count` things `per_page` a page: how many pages, and which things are on a page; one that is not there is the
// nearest that is.
struct PageRange {
  PageRange(size_t count, size_t per_page, size_t page);
  size_t pages, page, from, to;
};

}  // namespace sluice::admin

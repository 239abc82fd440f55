#include "config/suggest.h"

#include <algorithm>

namespace sluice::config {
namespace {

constexpr size_t kEditsMax = 2;
constexpr size_t kWordBytesMax = 64;  // no key is longer; bounds the cost of a hostile one

// Insertions, deletions, replacements and swaps of neighbours (Damerau 1964, each place edited once).
size_t Edits(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

}  // namespace

std::string_view Suggest(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.size() > kWordBytesMax) return {};
  std::string_view best;
  size_t best_edits = std::min(kEditsMax, (word.size() - std::min<size_t>(word.size(), 1)) / 2) + 1;
  for (std::string_view candidate : known) {
    if (candidate.size() > word.size() + kEditsMax || word.size() > candidate.size() + kEditsMax) continue;
    const size_t edits = Edits(word, candidate);
    if (edits < best_edits) {
      best = candidate;
      best_edits = edits;
    }
  }
  return best;
}

}  // namespace sluice::config

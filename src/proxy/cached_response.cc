#include "proxy/cached_response.h"

#include <algorithm>
#include <charconv>

namespace sluice::proxy {
namespace {

constexpr std::string_view kAge = "age";
constexpr std::string_view kSluiceCache = "sluice-cache";
// RFC 9111 1.2.2: what does not fit counts as this many seconds.
constexpr uint64_t kSecondsMax = 1u << 31;

void Append(http2::HeaderList& out, http2::InternTable* table, std::string_view name, std::string_view value,
            http2::Indexing indexing) {
  if (table != nullptr && indexing == http2::Indexing::kIndexed) {
    out.AddInterned(table->Intern(name, value));
  } else {
    out.Add(name, value, indexing);
  }
}

}  // namespace

std::string_view ToString(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kNone: return "none";
    case CacheOutcome::kMiss: return "miss";
    case CacheOutcome::kHit: return "hit";
    case CacheOutcome::kStale: return "stale";
    case CacheOutcome::kCoalesced: return "coalesced";
  }
  return "?";
}

FlatHeaders::FlatHeaders(const http2::HeaderList& fields) {
  size_t bytes = 0;
  for (const http2::Field* field : fields) bytes += size_t{field->name_size} + field->value_size;
  bytes_.reserve(bytes);
  fields_.reserve(fields.size());
  for (const http2::Field* field : fields) {
    bytes_.append(field->name()).append(field->value());
    fields_.push_back({field->name_size, field->value_size, field->indexing});
  }
}

void FlatHeaders::AppendTo(http2::HeaderList& out, http2::InternTable* table) const {
  ForEach([&](std::string_view name, std::string_view value, http2::Indexing indexing) {
    Append(out, table, name, value, indexing);
  });
}

std::string_view FlatHeaders::Find(std::string_view name) const {
  std::string_view rest = bytes_;
  for (const Entry& entry : fields_) {
    if (rest.substr(0, entry.name_size) == name) return rest.substr(entry.name_size, entry.value_size);
    rest.remove_prefix(size_t{entry.name_size} + entry.value_size);
  }
  return {};
}

bool FlatHeaders::Has(std::string_view name) const {
  bool found = false;
  ForEach([&](std::string_view field, std::string_view, http2::Indexing) { found |= field == name; });
  return found;
}

uint32_t CachedResponse::age_at_arrival() const {
  // RFC 9111 5.1: of a list the first member counts; what is no number is ignored.
  std::string_view value = headers.Find(kAge);
  value = value.substr(0, value.find(','));
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  if (value.empty() || value.find_first_not_of("0123456789") != value.npos) return 0;
  uint64_t seconds = kSecondsMax;  // stays where the number does not fit
  std::from_chars(value.data(), value.data() + value.size(), seconds);
  return static_cast<uint32_t>(std::min(seconds, kSecondsMax));
}

http2::HeaderList CachedResponse::HeadersFor(CacheOutcome outcome, base::TimePoint now, http2::InternTable* table) const {
  http2::HeaderList out(table);
  if (outcome == CacheOutcome::kNone || outcome == CacheOutcome::kMiss) {
    headers.AppendTo(out, table);
    return out;
  }
  // Ours replace what another proxy above may have said of itself.
  headers.ForEach([&](std::string_view name, std::string_view value, http2::Indexing indexing) {
    if (name != kAge && name != kSluiceCache) Append(out, table, name, value, indexing);
  });
  Append(out, table, kSluiceCache, ToString(outcome), http2::Indexing::kIndexed);
  // `now` may be of an earlier turn than the other worker's that stored.
  const auto resident = std::chrono::duration_cast<std::chrono::seconds>(now - stored).count();
  const uint64_t age = std::min(kSecondsMax, age_at_arrival() + static_cast<uint64_t>(std::max<int64_t>(0, resident)));
  char digits[20];
  const char* end = std::to_chars(digits, digits + sizeof(digits), age).ptr;
  out.Add(kAge, {digits, static_cast<size_t>(end - digits)});
  return out;
}

}  // namespace sluice::proxy

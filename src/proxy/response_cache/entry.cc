#include "proxy/response_cache/entry.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/hash.h"

namespace sluice::proxy {
namespace {

constexpr std::string_view kAge = "age";
constexpr uint16_t kAgeIndex = 21;  // RFC 7541 Appendix A
constexpr std::string_view kSluiceCache = "sluice-cache";
// RFC 9111 1.2.2: what does not fit counts as this many seconds.
constexpr uint64_t kSecondsMax = 1u << 31;

uint32_t ParseAge(std::string_view value) {
  // RFC 9111 5.1: of a list the first member counts; what is no number is ignored.
  value = value.substr(0, value.find(','));
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  if (value.empty() || value.find_first_not_of("0123456789") != value.npos) return 0;
  uint64_t seconds = kSecondsMax;  // stays where the number does not fit
  std::from_chars(value.data(), value.data() + value.size(), seconds);
  return static_cast<uint32_t>(std::min(seconds, kSecondsMax));
}

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
    case CacheOutcome::kNone:
      return "none";
    case CacheOutcome::kMiss:
      return "miss";
    case CacheOutcome::kHit:
      return "hit";
    case CacheOutcome::kStale:
      return "stale";
    case CacheOutcome::kCoalesced:
      return "coalesced";
  }
  return "?";
}

FlatHeaders::FlatHeaders(const http2::HeaderList& fields) : size_(fields.size()) {
  size_t bytes = size_ * sizeof(Entry);
  for (const http2::Field* field : fields) bytes += size_t{field->name_size} + field->value_size;
  bytes_.reserve(bytes);
  for (const http2::Field* field : fields) {
    const Entry entry{field->name_size, field->value_size, field->indexing, {}};
    bytes_.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  for (const http2::Field* field : fields) bytes_.append(field->name()).append(field->value());
  hash_ = base::Hash64(bytes_, size_);
  age_ = ParseAge(Find(kAge));
}

void FlatHeaders::AppendTo(http2::HeaderList& out, http2::InternTable* table) const {
  ForEach([&](std::string_view name, std::string_view value, http2::Indexing indexing) {
    Append(out, table, name, value, indexing);
  });
}

std::string_view FlatHeaders::Find(std::string_view name) const {
  std::string_view found;
  bool is_first = true;
  ForEach([&](std::string_view field, std::string_view value, http2::Indexing) {
    if (field == name && std::exchange(is_first, false)) found = value;
  });
  return found;
}

bool FlatHeaders::Has(std::string_view name) const {
  bool found = false;
  ForEach([&](std::string_view field, std::string_view, http2::Indexing) { found |= field == name; });
  return found;
}

uint64_t CachedResponse::AgeAt(base::TimePoint now) const {
  // `now` may be of an earlier turn than the other worker's that stored.
  const auto resident = std::chrono::duration_cast<std::chrono::seconds>(now - stored).count();
  return std::min(kSecondsMax, age_at_arrival() + static_cast<uint64_t>(std::max<int64_t>(0, resident)));
}

http2::HeaderList CachedResponse::HeadersFor(CacheOutcome outcome, base::TimePoint now,
                                             http2::InternTable* table) const {
  http2::HeaderList out(table);
  AppendHeaders(headers, outcome, out, table);
  if (SaysOutcome(outcome)) AppendAge(AgeAt(now), out);
  return out;
}

void AppendHeaders(const FlatHeaders& headers, CacheOutcome outcome, http2::HeaderList& out,
                   http2::InternTable* table) {
  if (!SaysOutcome(outcome)) return headers.AppendTo(out, table);
  // Ours replace what another proxy above may have said of itself.
  headers.ForEach([&](std::string_view name, std::string_view value, http2::Indexing indexing) {
    if (name != kAge && name != kSluiceCache) Append(out, table, name, value, indexing);
  });
  Append(out, table, kSluiceCache, ToString(outcome), http2::Indexing::kIndexed);
}

// As HeaderList::Add, but what kind of field it is need not be found out.
void AppendAge(uint64_t seconds, http2::HeaderList& out) {
  constexpr size_t kDigitsMax = 20;
  http2::Field* field = out.StartField(kAge.size() + kDigitsMax);
  char* const value = field->bytes() + kAge.size();
  const char* const end = std::to_chars(value, value + kDigitsMax, seconds).ptr;
  *field = http2::Field{.name_size = kAge.size(),
                        .value_size = static_cast<uint32_t>(end - value),
                        .refs = 0,
                        .static_name_index = kAgeIndex,
                        .static_index = 0,
                        .id = 0,
                        .token = http2::Token::kOther,
                        .indexing = http2::Indexing::kLiteral,
                        .checked = false};
  std::memcpy(field->bytes(), kAge.data(), kAge.size());
  out.FinishField(field);
}

void SendStored(http2::StreamIo& to, const CachedResponse& response, const http2::HeaderList& headers,
                const http2::HeaderList& trailers) {
  const bool has_data = !response.message.empty() || response.ended_on_data;
  const bool has_trailers = !response.trailers_only();
  to.SendHeaders(headers, !has_data && !has_trailers);
  if (has_data) to.SendData(response.message, !has_trailers);
  if (has_trailers) to.SendHeaders(trailers, true);
}

}  // namespace sluice::proxy

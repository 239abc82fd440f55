// CachedResponse: one whole unary response, immutable, shared by calls of all workers. What a call of the same key
// would have got from the upstream, byte for byte.
//
// Thread safety: immutable; held by shared_ptr. The message is a Slice of a block of its own, so a client that reads it
// slowly holds the bytes and no slot of the cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/slice.h"
#include "http2/fields/header.h"
#include "http2/session/stream_io.h"
#include "proxy/grpc_status.h"

namespace sluice::proxy {

// How a call came by its response; the value of the sluice-cache header.
enum class CacheOutcome : uint8_t { kNone, kMiss, kHit, kStale, kCoalesced };
std::string_view ToString(CacheOutcome outcome);
// Whether a response is sent with `sluice-cache` and an `age` of ours.
inline bool SaysOutcome(CacheOutcome outcome) {
  return outcome != CacheOutcome::kNone && outcome != CacheOutcome::kMiss;
}

// Header fields as one flat piece of memory, valid on any worker.
class FlatHeaders {
 public:
  FlatHeaders() = default;
  explicit FlatHeaders(const http2::HeaderList& fields);
  // Appends all fields in order, with their Indexing. With `table` (the calling worker's, and that of `out`) those that
  // the upstream had indexed are interned, so that the encoder knows them the next time.
  void AppendTo(http2::HeaderList& out, http2::InternTable* table = nullptr) const;
  std::string_view Find(std::string_view name) const;  // of the first; empty if there is none
  bool Has(std::string_view name) const;
  // fn(name, value, indexing) for each field in order.
  template <typename Fn>
  void ForEach(Fn&& fn) const {
    std::string_view rest = std::string_view(bytes_).substr(size_ * sizeof(Entry));
    for (size_t i = 0; i < size_; ++i) {
      Entry entry;
      std::memcpy(&entry, bytes_.data() + i * sizeof(Entry), sizeof(Entry));
      fn(rest.substr(0, entry.name_size), rest.substr(entry.name_size, entry.value_size), entry.indexing);
      rest.remove_prefix(size_t{entry.name_size} + entry.value_size);
    }
  }
  size_t bytes() const { return bytes_.capacity(); }
  size_t size() const { return size_; }
  // As HeaderList::hpack_size().
  size_t list_bytes() const { return bytes_.size() + size_ * (32 - sizeof(Entry)); }

  // The same fields in the same order with the same Indexing.
  bool operator==(const FlatHeaders& other) const { return size_ == other.size_ && bytes_ == other.bytes_; }
  // Of all that == compares. Not keyed: to find a place where equal ones may be, no more.
  uint64_t hash() const { return hash_; }
  // Of its `age` field (RFC 9111 5.1), in seconds, at most 2^31; 0 without a valid one.
  uint32_t age() const { return age_; }

 private:
  // All of its bytes are written, so that equal fields are equal bytes.
  struct Entry {
    uint32_t name_size, value_size;
    http2::Indexing indexing;
    uint8_t padding[3];
  };
  std::string bytes_;  // an Entry for each field, then names and values
  size_t size_ = 0;
  uint64_t hash_ = 0;
  uint32_t age_ = 0;
};

struct CachedResponse {
  static constexpr size_t kAddedBytesMax = 128;  // sluice-cache and age
  FlatHeaders headers;
  base::Slice message;   // all DATA, with the gRPC length prefix; empty for trailers-only
  FlatHeaders trailers;  // empty: none came
  GrpcCode status = GrpcCode::kUnknown;
  bool ended_on_data = false;  // END_STREAM came on DATA, which may have been empty
  base::TimePoint stored{};    // when it was complete

  bool trailers_only() const { return trailers.size() == 0; }
  size_t bytes() const { return sizeof(*this) + headers.bytes() + message.size() + trailers.bytes(); }
  // Of the larger of its two lists, as HeaderList::hpack_size(), with what the proxy may add to it.
  size_t list_bytes() const { return std::max(headers.list_bytes() + kAddedBytesMax, trailers.list_bytes()); }
  // Seconds old it was when it came here: what the upstream says.
  uint32_t age_at_arrival() const { return headers.age(); }
  // What it is to be sent with at `now`, in whole seconds: at most 2^31.
  uint64_t AgeAt(base::TimePoint now) const;
  // The headers to send: the original's, `sluice-cache` (kHit, kStale, kCoalesced) and `age` in whole seconds (RFC 9111
  // 5.1: an age the upstream gave counts too, so it is replaced by the sum). kNone, kMiss: the original's alone.
  // `table`: the calling worker's, or null. stored_header_memo.h has the same for what is sent often.
  http2::HeaderList HeadersFor(CacheOutcome outcome, base::TimePoint now, http2::InternTable* table) const;
};

// The parts of HeadersFor: all but `age` of the headers, and the age. `out` is of `table`, where that is not null.
void AppendHeaders(const FlatHeaders& headers, CacheOutcome outcome, http2::HeaderList& out, http2::InternTable* table);
void AppendAge(uint64_t seconds, http2::HeaderList& out);

// Sends the response whole, with `headers` and, unless it is trailers-only, `trailers`. The stream is not released.
void SendStored(http2::StreamIo& to, const CachedResponse& response, const http2::HeaderList& headers,
                const http2::HeaderList& trailers);

using CachedResponsePtr = std::shared_ptr<const CachedResponse>;

}  // namespace sluice::proxy

// Field, InternTable and HeaderList: a header field is spelled once and then passed by pointer.
//
// A field that HPACK decodes from (or adds to) its dynamic table is *interned*: one Field per worker for equal name and
// value, classified once (Token), with an id that encoders remember. A repeated gRPC header block costs table look-ups.
// A field sent as a literal without indexing is *transient*: it lives in the arena of the HeaderList it came in.
//
// Thread safety: none. Interned Fields, their counts and the InternTable belong to one worker. A HeaderList that goes
// to another worker goes as a Clone made transient there; the original returns home to be destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace sluice::http2 {

// Names the proxy looks at, recognised once when a field is made. Order: pseudo-headers first (kPath etc.), see IsPseudo.
enum class Token : uint8_t {
  kOther,
  // Pseudo-headers, RFC 9113 8.3.
  kMethod, kScheme, kAuthority, kPath, kStatus, kProtocol, kUnknownPseudo,
  // Connection-specific fields, RFC 9113 8.2.2: must not be in HTTP/2 at all (te: only "trailers").
  kConnection, kProxyConnection, kKeepAlive, kTransferEncoding, kUpgrade, kTe,
  // Routing, forwarding and gRPC.
  kHost, kContentType, kContentLength, kUserAgent, kAuthorization, kCookie, kForwarded, kXForwardedFor, kXForwardedProto,
  kXForwardedHost, kXRequestId, kVia, kGrpcTimeout, kGrpcEncoding, kGrpcStatus, kGrpcMessage,
  kGrpcRetryPushbackMs, kGrpcPreviousRpcAttempts, kSluiceReason,
};
Token TokenOf(std::string_view name);
inline bool IsPseudo(Token token) { return token >= Token::kMethod && token <= Token::kUnknownPseudo; }

// How the sender asked for the field to be treated; the encoder mirrors it towards the next hop (RFC 7541 6.2).
enum class Indexing : uint8_t {
  kIndexed,  // was in, or was added to, a table
  kLiteral,  // without indexing
  kNever,    // never indexed: an intermediary must keep it so (RFC 7541 7.1.3)
};

// One header field. Immutable but for the count. name and value are contiguous, name first, in memory after the Field.
struct Field {
  uint32_t name_size;
  uint32_t value_size;
  uint32_t refs;       // interned: holders on this worker. Transient and static: unused
  uint16_t static_name_index;  // RFC 7541 Appendix A: an index with this name, or 0
  uint16_t static_index;       // the index with this name and value, or 0
  uint64_t id;         // interned and static: unique in the process, never reused. Transient: 0
  Token token;
  Indexing indexing;

  std::string_view name() const { return {reinterpret_cast<const char*>(this + 1), name_size}; }
  std::string_view value() const { return {reinterpret_cast<const char*>(this + 1) + name_size, value_size}; }
  bool interned() const { return id != 0; }
  // RFC 7541 4.1: what the field counts in a table or a list.
  size_t hpack_size() const { return size_t{name_size} + value_size + 32; }
};

// The interned fields of one worker. Entries live while somebody holds them, so its size is bounded by the tables and
// header lists alive. Must outlive every HeaderList and HPACK table that uses it.
class InternTable {
 public:
  InternTable();
  ~InternTable();
  InternTable(const InternTable&) = delete;
  InternTable& operator=(const InternTable&) = delete;

  // The field, with one reference added for the caller. `indexing` is kIndexed.
  const Field* Intern(std::string_view name, std::string_view value);
  // Entry `index` (1..61) of the static table, as a Field that lives for ever; counting it is harmless.
  static const Field* Static(size_t index);

  static void Ref(const Field* field);
  // Drops a reference; the last one frees the field.
  void Unref(const Field* field);

  size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An ordered list of fields: a request's or response's header block or trailers.
class HeaderList {
 public:
  HeaderList() = default;  // may hold transient fields only
  explicit HeaderList(InternTable* table) : table_(table) {}
  HeaderList(HeaderList&& other) noexcept;
  HeaderList& operator=(HeaderList&& other) noexcept;
  ~HeaderList();

  // Appends a copy of the bytes as a transient field.
  const Field* Add(std::string_view name, std::string_view value, Indexing indexing = Indexing::kLiteral);
  // Appends an interned or static field; takes over one reference of the caller.
  void AddInterned(const Field* field);
  // The first field with that token (not kOther) or name; null if there is none.
  const Field* Find(Token token) const;
  const Field* Find(std::string_view name) const;
  // Removes all fields with that token. Order of the others stays.
  void Remove(Token token);
  // Replaces the first with that token in place (or appends) by a transient one, removes the others.
  void Set(Token token, std::string_view name, std::string_view value);
  void Clear();
  // A deep copy whose fields are all transient (their Indexing kept), valid on any worker.
  HeaderList Clone() const;

  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  const Field& operator[](size_t i) const { return *fields_[i]; }
  const Field* const* begin() const { return fields_.data(); }
  const Field* const* end() const { return fields_.data() + fields_.size(); }
  // RFC 9113 6.5.2 SETTINGS_MAX_HEADER_LIST_SIZE: the sum of hpack_size().
  size_t hpack_size() const { return hpack_size_; }

 private:
  // A chain of memory chunks for transient fields; freed whole.
  struct Chunk;
  void* Allocate(size_t bytes);
  void Release(const Field* field);

  InternTable* table_ = nullptr;
  absl::InlinedVector<const Field*, 16> fields_;
  Chunk* chunks_ = nullptr;
  size_t hpack_size_ = 0;
};

}  // namespace sluice::http2

// Field: one header field, and what is known of its name: classified once (Token), then passed by pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::http2 {

// Names the proxy looks at, recognised once when a field is made. Order: pseudo-headers first (kPath etc.),
// see IsPseudo.
enum class Token : uint8_t {
  kOther,
  // Pseudo-headers, RFC 9113 8.3.
  kMethod,
  kScheme,
  kAuthority,
  kPath,
  kStatus,
  kProtocol,
  kUnknownPseudo,
  // Connection-specific fields, RFC 9113 8.2.2: must not be in HTTP/2 at all (te: only "trailers").
  kConnection,
  kProxyConnection,
  kKeepAlive,
  kTransferEncoding,
  kUpgrade,
  kTe,
  // Routing, forwarding and gRPC.
  kHost,
  kContentType,
  kContentLength,
  kUserAgent,
  kAuthorization,
  kCookie,
  kForwarded,
  kXForwardedFor,
  kXForwardedProto,
  kXForwardedHost,
  kXForwardedClientCert,
  kXRequestId,
  kVia,
  kGrpcTimeout,
  kGrpcEncoding,
  kGrpcStatus,
  kGrpcMessage,
  kGrpcRetryPushbackMs,
  kGrpcPreviousRpcAttempts,
  kSluice,  // each name that the proxy itself gives to a field
  // The response cache.
  kCacheControl,
  kGrpcAcceptEncoding,
  // Tracing.
  kTraceparent,
  kTracestate,
  kGrpcTraceBin,
};
inline constexpr size_t kTokens = static_cast<size_t>(Token::kGrpcTraceBin) + 1;
static_assert(kTokens <= 64, "FieldRun::tokens has a bit for each");
Token TokenOf(std::string_view name);
inline bool IsPseudo(Token token) { return token >= Token::kMethod && token <= Token::kUnknownPseudo; }

// How the sender asked for the field to be treated; the encoder mirrors it towards the next hop (RFC
// 7541 6.2).
enum class Indexing : uint8_t {
  kIndexed,  // was in, or was added to, a table
  kLiteral,  // without indexing
  kNever,    // never indexed: an intermediary must keep it so (RFC 7541 7.1.3)
};

// Ids of static fields are their indexes; interned fields have larger ones.
inline constexpr uint64_t kStaticIdMax = 61;

// One header field. Immutable but for the count, `checked` and `respell`. name and value are contiguous, name first, in
// memory after the Field.
struct Field {
  uint32_t name_size;
  uint32_t value_size;
  uint32_t refs;               // interned: holders on this worker. Transient and static: unused, never written
  uint16_t static_name_index;  // RFC 7541 Appendix A: the lowest index with this name, or 0
  uint16_t static_index;       // the index with this name and value, or 0
  uint64_t id;                 // interned and static: unique in the process, never reused. Transient: 0
  Token token;
  Indexing indexing;
  bool checked;  // known to be legal, and spelled as it goes on (validate.cc); set where id is not 0, kept by a Clone
  bool respell = false;  // known to be legal, and to be spelled otherwise (respell.h); the same

  std::string_view name() const { return {bytes(), name_size}; }
  std::string_view value() const { return {bytes() + name_size, value_size}; }
  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  bool interned() const { return id != 0; }
  // Has a count: interned and not static. Static fields are shared by all workers, and read-only memory.
  bool counted() const { return id > kStaticIdMax; }
  // RFC 7541 4.1: what the field counts in a table or a list.
  size_t hpack_size() const { return size_t{name_size} + value_size + 32; }
  // What a field with so many bytes of name and value takes where fields lie one behind the other.
  static constexpr size_t BytesFor(size_t text) { return (sizeof(Field) + text + 7) & ~size_t{7}; }
  size_t bytes_taken() const { return BytesFor(size_t{name_size} + value_size); }
};

}  // namespace sluice::http2

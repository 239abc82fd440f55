#include "http2/fields/static_table.h"

#include <utility>

namespace sluice::http2 {
namespace {

struct Pair {
  std::string_view name, value;
};

// RFC 7541 Appendix A, from index 1 on. Entries with the same name are neighbours: StaticIndex() relies on
// it.
constexpr Pair kPairs[kStaticCount] = {
    {":authority", ""},
    {":method", "GET"},
    {":method", "POST"},
    {":path", "/"},
    {":path", "/index.html"},
    {":scheme", "http"},
    {":scheme", "https"},
    {":status", "200"},
    {":status", "204"},
    {":status", "206"},
    {":status", "304"},
    {":status", "400"},
    {":status", "404"},
    {":status", "500"},
    {"accept-charset", ""},
    {"accept-encoding", "gzip, deflate"},
    {"accept-language", ""},
    {"accept-ranges", ""},
    {"accept", ""},
    {"access-control-allow-origin", ""},
    {"age", ""},
    {"allow", ""},
    {"authorization", ""},
    {"cache-control", ""},
    {"content-disposition", ""},
    {"content-encoding", ""},
    {"content-language", ""},
    {"content-length", ""},
    {"content-location", ""},
    {"content-range", ""},
    {"content-type", ""},
    {"cookie", ""},
    {"date", ""},
    {"etag", ""},
    {"expect", ""},
    {"expires", ""},
    {"from", ""},
    {"host", ""},
    {"if-match", ""},
    {"if-modified-since", ""},
    {"if-none-match", ""},
    {"if-range", ""},
    {"if-unmodified-since", ""},
    {"last-modified", ""},
    {"link", ""},
    {"location", ""},
    {"max-forwards", ""},
    {"proxy-authenticate", ""},
    {"proxy-authorization", ""},
    {"range", ""},
    {"referer", ""},
    {"refresh", ""},
    {"retry-after", ""},
    {"server", ""},
    {"set-cookie", ""},
    {"strict-transport-security", ""},
    {"transfer-encoding", ""},
    {"user-agent", ""},
    {"vary", ""},
    {"via", ""},
    {"www-authenticate", ""},
};

struct NamedToken {
  std::string_view name;
  Token token;
};

// In the order of Token; kOther and kUnknownPseudo have no name.
constexpr NamedToken kNamedTokens[] = {
    {":method", Token::kMethod},
    {":scheme", Token::kScheme},
    {":authority", Token::kAuthority},
    {":path", Token::kPath},
    {":status", Token::kStatus},
    {":protocol", Token::kProtocol},
    {"connection", Token::kConnection},
    {"proxy-connection", Token::kProxyConnection},
    {"keep-alive", Token::kKeepAlive},
    {"transfer-encoding", Token::kTransferEncoding},
    {"upgrade", Token::kUpgrade},
    {"te", Token::kTe},
    {"host", Token::kHost},
    {"content-type", Token::kContentType},
    {"content-length", Token::kContentLength},
    {"user-agent", Token::kUserAgent},
    {"authorization", Token::kAuthorization},
    {"cookie", Token::kCookie},
    {"forwarded", Token::kForwarded},
    {"x-forwarded-for", Token::kXForwardedFor},
    {"x-forwarded-proto", Token::kXForwardedProto},
    {"x-forwarded-host", Token::kXForwardedHost},
    {"x-forwarded-client-cert", Token::kXForwardedClientCert},
    {"x-request-id", Token::kXRequestId},
    {"via", Token::kVia},
    {"grpc-timeout", Token::kGrpcTimeout},
    {"grpc-encoding", Token::kGrpcEncoding},
    {"grpc-status", Token::kGrpcStatus},
    {"grpc-message", Token::kGrpcMessage},
    {"grpc-retry-pushback-ms", Token::kGrpcRetryPushbackMs},
    {"grpc-previous-rpc-attempts", Token::kGrpcPreviousRpcAttempts},
    {"sluice-reason", Token::kSluice},
    {"cache-control", Token::kCacheControl},
    {"grpc-accept-encoding", Token::kGrpcAcceptEncoding},
    {"traceparent", Token::kTraceparent},
    {"tracestate", Token::kTracestate},
    {"grpc-trace-bin", Token::kGrpcTraceBin},
};
// All but kOther and kUnknownPseudo: a token added to the enum must be added here too.
static_assert(std::size(kNamedTokens) == kTokens - 2);

// More names with the token of one above.
constexpr NamedToken kMoreNames[] = {
    {"sluice-processed", Token::kSluice}, {"sluice-limit", Token::kSluice},   {"sluice-waited", Token::kSluice},
    {"sluice-cache", Token::kSluice},     {"sluice-call-id", Token::kSluice}, {"sluice-mirrored", Token::kSluice},
    {"sluice-hops", Token::kSluice},
};

struct KnownName {
  std::string_view name;
  NameClass cls;
};

constexpr size_t kKnownMax = kStaticCount + std::size(kNamedTokens) + std::size(kMoreNames);

struct KnownNames {
  std::array<KnownName, kKnownMax + 1> names{};  // 0 is no field: an empty name
  size_t count = 1;

  constexpr KnownName& Get(std::string_view name) {
    for (size_t i = 1; i < count; ++i) {
      if (names[i].name == name) return names[i];
    }
    names[count].name = name;
    return names[count++];
  }
};

constexpr KnownNames MakeKnownNames() {
  KnownNames known;
  for (size_t i = 0; i < kStaticCount; ++i) {
    KnownName& name = known.Get(kPairs[i].name);
    if (name.cls.static_name_index == 0) name.cls.static_name_index = static_cast<uint8_t>(i + 1);
  }
  for (const NamedToken& named : kNamedTokens) known.Get(named.name).cls.token = named.token;
  for (const NamedToken& named : kMoreNames) known.Get(named.name).cls.token = named.token;
  return known;
}
constexpr KnownNames kKnown = MakeKnownNames();

// A perfect hash over the known names. Their first four and last four bytes and their length tell them apart;
// the multiplier is searched for when this file is compiled.
constexpr int kSlotBits = 9;

constexpr uint32_t Load32(const char* p) {
  const auto byte = [p](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

constexpr uint64_t NameKey(std::string_view name) {
  const size_t size = name.size();
  if (size >= 4) return (Load32(name.data()) | uint64_t{Load32(name.data() + size - 4)} << 32) + size;
  uint64_t key = 0;  // "te", "age", "via"
  for (char c : name) key = key << 8 | static_cast<unsigned char>(c);
  return key;
}

constexpr size_t NameSlot(uint64_t key, uint64_t multiplier) {
  return static_cast<size_t>((key ^ key >> 29) * multiplier >> (64 - kSlotBits));
}

struct NameTable {
  uint64_t multiplier = 0;
  std::array<uint8_t, size_t{1} << kSlotBits> slots{};  // index into kKnown.names; 0: none
};

constexpr NameTable MakeNameTable() {
  uint64_t multiplier = 0x9e3779b97f4a7c15ull;
  for (int attempt = 0; attempt < 4000; ++attempt) {
    NameTable table;
    table.multiplier = multiplier;
    bool perfect = true;
    for (size_t i = 1; i < kKnown.count && perfect; ++i) {
      uint8_t& slot = table.slots[NameSlot(NameKey(kKnown.names[i].name), multiplier)];
      perfect = slot == 0;
      slot = static_cast<uint8_t>(i);
    }
    if (perfect) return table;
    multiplier = multiplier * 6364136223846793005ull + 1442695040888963406ull;
    multiplier |= 1;
  }
  return {};
}
constexpr NameTable kNameTable = MakeNameTable();
static_assert(kNameTable.multiplier != 0, "no perfect hash found: raise kSlotBits");

constexpr StaticSlot MakeSlot(size_t index) {
  const Pair& pair = kPairs[index - 1];
  StaticSlot slot{};
  for (size_t i = 1; i < kKnown.count; ++i) {
    if (kKnown.names[i].name != pair.name) continue;
    slot.field.static_name_index = kKnown.names[i].cls.static_name_index;
    slot.field.token = kKnown.names[i].cls.token;
  }
  slot.field.name_size = static_cast<uint32_t>(pair.name.size());
  slot.field.value_size = static_cast<uint32_t>(pair.value.size());
  slot.field.static_index = static_cast<uint16_t>(index);
  slot.field.id = index;
  slot.field.indexing = Indexing::kIndexed;
  slot.field.checked = true;
  size_t at = 0;
  for (char c : pair.name) slot.bytes[at++] = c;
  for (char c : pair.value) slot.bytes[at++] = c;
  return slot;
}

template <size_t... kIndex>
constexpr std::array<StaticSlot, kStaticCount + 1> MakeSlots(std::index_sequence<kIndex...>) {
  return {StaticSlot{}, MakeSlot(kIndex + 1)...};
}

}  // namespace

constinit const std::array<StaticSlot, kStaticCount + 1> kStaticSlots =
    MakeSlots(std::make_index_sequence<kStaticCount>());

NameClass ClassifyName(std::string_view name) {
  const KnownName& known = kKnown.names[kNameTable.slots[NameSlot(NameKey(name), kNameTable.multiplier)]];
  if (known.name == name) return known.cls;  // the empty name meets entry 0, or fails here: either way no field
  return {!name.empty() && name[0] == ':' ? Token::kUnknownPseudo : Token::kOther, 0};
}

uint16_t StaticIndex(size_t name_index, std::string_view value) {
  if (name_index == 0) return 0;
  for (size_t i = name_index; i <= kStaticCount; ++i) {
    const Field* field = StaticField(i);
    if (field->static_name_index != name_index) return 0;
    if (field->value() == value) return static_cast<uint16_t>(i);
  }
  return 0;
}

Token TokenOf(std::string_view name) { return ClassifyName(name).token; }

}  // namespace sluice::http2

#include "net/dns/dns_reply.h"

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace sluice::net {

namespace {

constexpr size_t kHeaderBytes = 12;  // RFC 1035 4.1.1
constexpr uint32_t kTypeCname = 5;

base::Nanos Bounded(int64_t seconds) {
  return std::clamp<base::Nanos>(std::chrono::seconds(seconds), DnsReply::kTtlMin, DnsReply::kTtlMax);
}

DnsReply Failed(std::string why) {
  DnsReply reply;
  reply.error = std::move(why);
  return reply;
}

DnsReply None() {
  DnsReply reply;
  reply.kind = DnsReply::Kind::kNone;
  reply.ttl = DnsReply::kNoneTtl;
  return reply;
}

std::string Text(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family, address, text, sizeof text);
  return text;
}

// The parts of a message that are needed for times to live: big-endian numbers and names to be passed over (RFC 1035
// 4.1). After a step over the end all further ones fail.
class Walker {
 public:
  explicit Walker(std::span<const uint8_t> message) : rest_(message) {}
  std::optional<uint32_t> Number(size_t bytes) {
    if (!Skip(bytes)) return std::nullopt;
    uint32_t number = 0;
    for (const uint8_t byte : last_) number = number << 8 | byte;
    return number;
  }
  bool Skip(size_t bytes) {
    if (rest_.size() < bytes) {
      rest_ = {};
      return false;
    }
    last_ = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return true;
  }
  // Labels up to the root or a pointer, which is the last part of a name.
  bool SkipName() {
    for (;;) {
      const std::optional<uint32_t> length = Number(1);
      if (!length) return false;
      if (*length == 0) return true;
      if ((*length & 0xc0) == 0xc0) return Skip(1);
      if (!Skip(*length)) return false;
    }
  }

 private:
  std::span<const uint8_t> rest_, last_;
};

// The least time to live of the answers of this type, and of the aliases before them. 0 where the message is not whole.
int64_t LeastTtl(std::span<const uint8_t> message, DnsType type) {
  if (message.size() < kHeaderBytes) return 0;
  const auto number = [&](size_t at) { return static_cast<uint32_t>(message[at]) << 8 | message[at + 1]; };
  const uint32_t questions = number(4), answers = number(6);
  Walker walker(message.subspan(kHeaderBytes));
  for (uint32_t i = 0; i < questions; ++i) {
    if (!walker.SkipName() || !walker.Skip(4)) return 0;
  }
  int64_t least = INT32_MAX;
  for (uint32_t i = 0; i < answers; ++i) {
    if (!walker.SkipName()) return 0;
    const auto record = walker.Number(2);
    walker.Skip(2);  // the class
    const auto ttl = walker.Number(4);
    const auto bytes = walker.Number(2);
    if (!record || !ttl || !bytes || !walker.Skip(*bytes)) return 0;
    // RFC 2181 8: with its first bit set it is to be taken for zero.
    const int64_t seconds = *ttl > INT32_MAX ? 0 : int64_t{*ttl};
    if (*record == static_cast<uint32_t>(type) || *record == kTypeCname) least = std::min(least, seconds);
  }
  return least;
}

template <typename Record>
DnsReply ReadAddresses(std::span<const uint8_t> message, int family,
                       int (*parse)(const unsigned char*, int, hostent**, Record*, int*)) {
  std::vector<Record> records(DnsReply::kRecordsMax);
  int count = static_cast<int>(records.size());
  const int status = parse(message.data(), static_cast<int>(message.size()), nullptr, records.data(), &count);
  if (status == ARES_ENODATA || (status == ARES_SUCCESS && count == 0)) return None();
  if (status != ARES_SUCCESS) return Failed(ares_strerror(status));
  DnsReply reply;
  reply.kind = DnsReply::Kind::kFound;
  int64_t ttl = INT32_MAX;
  for (int i = 0; i < count; ++i) {
    const Record& record = records[static_cast<size_t>(i)];
    const void* address;
    if constexpr (requires { record.ipaddr; })
      address = &record.ipaddr;
    else
      address = &record.ip6addr;
    reply.hosts.push_back(Text(family, address));
    ttl = std::min<int64_t>(ttl, record.ttl);
  }
  reply.ttl = Bounded(ttl);
  return reply;
}

DnsReply ReadTargets(std::span<const uint8_t> message) {
  ares_srv_reply* first = nullptr;
  const int status = ares_parse_srv_reply(message.data(), static_cast<int>(message.size()), &first);
  const std::unique_ptr<ares_srv_reply, void (*)(void*)> owned(first, &ares_free_data);
  if (status == ARES_ENODATA || (status == ARES_SUCCESS && first == nullptr)) return None();
  if (status != ARES_SUCCESS) return Failed(ares_strerror(status));
  DnsReply reply;
  reply.kind = DnsReply::Kind::kFound;
  reply.ttl = Bounded(LeastTtl(message, DnsType::kSrv));
  for (const ares_srv_reply* one = first; one != nullptr && reply.targets.size() < DnsReply::kRecordsMax;
       one = one->next) {
    // RFC 2782: a target of "." says that there is no such service.
    if (one->host == nullptr || *one->host == '\0' || std::string_view(one->host) == ".") continue;
    reply.targets.push_back({one->host, one->port, one->priority, one->weight});
  }
  return reply.targets.empty() ? None() : reply;
}

}  // namespace

std::string_view ToString(DnsType type) {
  switch (type) {
    case DnsType::kA:
      return "A";
    case DnsType::kAaaa:
      return "AAAA";
    case DnsType::kSrv:
      return "SRV";
  }
  return "?";
}

DnsReply ReadReply(DnsType type, int status, std::span<const uint8_t> message) {
  if (status == ARES_ENODATA || status == ARES_ENOTFOUND) return None();
  // What c-ares 1.18 says of all servers together, also where each has given an answer that is none.
  if (status == ARES_ECONNREFUSED) return Failed("no server could be reached, or each failed or refused");
  if (status != ARES_SUCCESS) return Failed(ares_strerror(status));
  switch (type) {
    case DnsType::kA:
      return ReadAddresses<ares_addrttl>(message, AF_INET, &ares_parse_a_reply);
    case DnsType::kAaaa:
      return ReadAddresses<ares_addr6ttl>(message, AF_INET6, &ares_parse_aaaa_reply);
    case DnsType::kSrv:
      return ReadTargets(message);
  }
  return Failed("no such type");
}

}  // namespace sluice::net

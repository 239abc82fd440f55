// DnsReply: what an answer of a DNS server says. A value, without I/O: what a server sends is not trusted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace sluice::net {

// Record types (RFC 1035 3.2.2, RFC 3596 2.1, RFC 2782).
enum class DnsType : uint16_t { kA = 1, kAaaa = 28, kSrv = 33 };
std::string_view ToString(DnsType type);

struct DnsTarget {
  std::string host;  // a full name, without a closing dot
  uint16_t port = 0, priority = 0, weight = 0;
  bool operator==(const DnsTarget&) const = default;
};

struct DnsReply {
  // How long an answer is good, whatever its server says.
  static constexpr base::Nanos kTtlMin = std::chrono::seconds(1), kTtlMax = std::chrono::hours(1);
  // A name without records is asked for again after this.
  static constexpr base::Nanos kNoneTtl = std::chrono::seconds(5);
  // Of one answer; a message of 64 KiB has no room for more.
  static constexpr size_t kRecordsMax = 4096;

  enum class Kind : uint8_t {
    kFound,   // at least one record
    kNone,    // there is no such name, or it has no such records
    kFailed,  // no answer, or one that tells nothing
  } kind = Kind::kFailed;
  std::string error;               // of kFailed
  std::vector<std::string> hosts;  // of A and AAAA: addresses as text
  std::vector<DnsTarget> targets;  // of SRV
  base::Nanos ttl = kTtlMin;       // the least of its records, within the bounds; of kNone kNoneTtl
};

// `status`: of c-ares, 0 where there is a message (ARES_SUCCESS). `message`: a whole one, of any content. Any thread.
DnsReply ReadReply(DnsType type, int status, std::span<const uint8_t> message);

}  // namespace sluice::net

// Messages of etcd's v3 API as values: what is asked, serialized, and what its answers say, parsed. Answers are
// untrusted: bytes that are none are nullopt, and what they say may be nonsense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::discovery {

inline constexpr std::string_view kEtcdRange = "/etcdserverpb.KV/Range", kEtcdPut = "/etcdserverpb.KV/Put",
                                  kEtcdWatch = "/etcdserverpb.Watch/Watch",
                                  kEtcdGrant = "/etcdserverpb.Lease/LeaseGrant",
                                  kEtcdRevoke = "/etcdserverpb.Lease/LeaseRevoke",
                                  kEtcdKeepAlive = "/etcdserverpb.Lease/LeaseKeepAlive",
                                  kEtcdAuthenticate = "/etcdserverpb.Auth/Authenticate";

// Which cluster has answered, and the newest revision it knew.
struct EtcdHeader {
  uint64_t cluster = 0;
  int64_t revision = 0;
};

// A key with its value; without: it was deleted.
struct EtcdChange {
  std::string key;
  std::optional<std::string> value;
};

// One answer to Range.
struct EtcdPage {
  EtcdHeader header;
  std::vector<EtcdChange> keys;
  bool more = false;
};

// One message of a watch.
struct EtcdNews {
  EtcdHeader header;
  bool cancelled = false;
  bool fragment = false;  // of a message that was too long; more is to follow
  int64_t compacted = 0;  // above 0: what was asked for is older than this revision, and forgotten
  std::string reason;     // why it was cancelled
  std::vector<EtcdChange> changes;
};

struct EtcdLease {
  EtcdHeader header;
  int64_t id = 0;
  int64_t ttl = 0;  // seconds; 0 or less: there is no such lease any more
};

// The first key behind all that begin with `prefix`, which is not empty; "\0": there is none.
std::string EtcdRangeEnd(std::string_view prefix);

// [from, to), or `from` alone if `to` is empty. `revision` 0: as it is now, linearizable.
std::string EtcdRangeRequest(std::string_view from, std::string_view to, int64_t revision, int64_t limit);
std::optional<EtcdPage> ParseEtcdPage(const std::string& bytes);

// Events of [from, to) since `revision`, with fragments.
std::string EtcdWatchRequest(std::string_view from, std::string_view to, int64_t revision);
// "Say something": it is answered by a message without events.
std::string EtcdProgressRequest();
std::optional<EtcdNews> ParseEtcdNews(const std::string& bytes);

std::string EtcdAuthenticateRequest(const std::string& user, const std::string& password);
std::optional<std::string> ParseEtcdToken(const std::string& bytes);

std::string EtcdGrantRequest(int64_t ttl_seconds);
std::string EtcdKeepAliveRequest(int64_t lease);
std::string EtcdRevokeRequest(int64_t lease);
std::string EtcdPutRequest(std::string_view key, std::string_view value, int64_t lease);
std::optional<EtcdLease> ParseEtcdGrant(const std::string& bytes);
std::optional<EtcdLease> ParseEtcdKeepAlive(const std::string& bytes);

// Text from elsewhere for a message to people: printable, at most 200 bytes of it.
std::string EtcdShown(std::string_view text);

}  // namespace sluice::discovery

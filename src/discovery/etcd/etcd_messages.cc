#include "discovery/etcd/etcd_messages.h"

#include <utility>

#include "etcd/rpc.pb.h"

namespace sluice::discovery {
namespace {

constexpr size_t kShownBytesMax = 200;

EtcdHeader HeaderOf(const etcdserverpb::ResponseHeader& header) { return {header.cluster_id(), header.revision()}; }

std::string Text(std::string_view view) { return std::string(view); }

template <typename Response>
std::optional<EtcdLease> ParseLease(const std::string& bytes) {
  Response response;
  if (!response.ParseFromString(bytes)) return std::nullopt;
  return EtcdLease{HeaderOf(response.header()), response.id(), response.ttl()};
}

}  // namespace

std::string EtcdRangeEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  ++end.back();
  return end;
}

std::string EtcdRangeRequest(std::string_view from, std::string_view to, int64_t revision, int64_t limit) {
  etcdserverpb::RangeRequest request;
  request.set_key(Text(from));
  request.set_range_end(Text(to));
  request.set_revision(revision);
  request.set_limit(limit);
  return request.SerializeAsString();
}

std::optional<EtcdPage> ParseEtcdPage(const std::string& bytes) {
  etcdserverpb::RangeResponse response;
  if (!response.ParseFromString(bytes)) return std::nullopt;
  EtcdPage page{HeaderOf(response.header()), {}, response.more()};
  page.keys.reserve(static_cast<size_t>(response.kvs_size()));
  for (auto& kv : *response.mutable_kvs())
    page.keys.push_back({std::move(*kv.mutable_key()), std::move(*kv.mutable_value())});
  return page;
}

std::string EtcdWatchRequest(std::string_view from, std::string_view to, int64_t revision) {
  etcdserverpb::WatchRequest request;
  auto& create = *request.mutable_create_request();
  create.set_key(Text(from));
  create.set_range_end(Text(to));
  create.set_start_revision(revision);
  create.set_progress_notify(true);
  create.set_fragment(true);
  return request.SerializeAsString();
}

std::string EtcdProgressRequest() {
  etcdserverpb::WatchRequest request;
  request.mutable_progress_request();
  return request.SerializeAsString();
}

std::optional<EtcdNews> ParseEtcdNews(const std::string& bytes) {
  etcdserverpb::WatchResponse response;
  if (!response.ParseFromString(bytes)) return std::nullopt;
  EtcdNews news;
  news.header = HeaderOf(response.header());
  news.cancelled = response.canceled();
  news.fragment = response.fragment();
  news.compacted = response.compact_revision();
  news.reason = std::move(*response.mutable_cancel_reason());
  for (auto& event : *response.mutable_events()) {
    EtcdChange change{std::move(*event.mutable_kv()->mutable_key()), std::nullopt};
    if (event.type() == mvccpb::Event::PUT) change.value = std::move(*event.mutable_kv()->mutable_value());
    news.changes.push_back(std::move(change));
  }
  return news;
}

std::string EtcdAuthenticateRequest(const std::string& user, const std::string& password) {
  etcdserverpb::AuthenticateRequest request;
  request.set_name(user);
  request.set_password(password);
  return request.SerializeAsString();
}

std::optional<std::string> ParseEtcdToken(const std::string& bytes) {
  etcdserverpb::AuthenticateResponse response;
  if (!response.ParseFromString(bytes)) return std::nullopt;
  return std::move(*response.mutable_token());
}

std::string EtcdGrantRequest(int64_t ttl_seconds) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(ttl_seconds);
  return request.SerializeAsString();
}

std::string EtcdKeepAliveRequest(int64_t lease) {
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(lease);
  return request.SerializeAsString();
}

std::string EtcdRevokeRequest(int64_t lease) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  return request.SerializeAsString();
}

std::string EtcdPutRequest(std::string_view key, std::string_view value, int64_t lease) {
  etcdserverpb::PutRequest request;
  request.set_key(Text(key));
  request.set_value(Text(value));
  request.set_lease(lease);
  return request.SerializeAsString();
}

std::optional<EtcdLease> ParseEtcdGrant(const std::string& bytes) {
  return ParseLease<etcdserverpb::LeaseGrantResponse>(bytes);
}

std::optional<EtcdLease> ParseEtcdKeepAlive(const std::string& bytes) {
  return ParseLease<etcdserverpb::LeaseKeepAliveResponse>(bytes);
}

std::string EtcdShown(std::string_view text) {
  std::string shown(text.substr(0, kShownBytesMax));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kShownBytesMax) shown += "...";
  return shown;
}

}  // namespace sluice::discovery

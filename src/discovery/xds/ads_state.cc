#include "discovery/xds/ads_state.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace sluice::discovery {

using base::TimePoint;

std::string_view ToString(XdsResourceState state) {
  switch (state) {
    case XdsResourceState::kRequested:
      return "REQUESTED";
    case XdsResourceState::kDoesNotExist:
      return "DOES_NOT_EXIST";
    case XdsResourceState::kAcked:
      return "ACKED";
    case XdsResourceState::kNacked:
      return "NACKED";
  }
  return "REQUESTED";
}

std::string_view ToString(AdsStreamState state) {
  switch (state) {
    case AdsStreamState::kNone:
      return "none";
    case AdsStreamState::kBackoff:
      return "backoff";
    case AdsStreamState::kBegun:
      return "begun";
    case AdsStreamState::kConnected:
      return "connected";
  }
  return "none";
}

void AdsState::Want(XdsType type, const std::set<std::string>& names) {
  Type& t = of(type);
  bool changed = false;
  for (auto it = t.resources.begin(); it != t.resources.end();) {
    const bool kept = names.contains(it->first);
    changed |= !kept;
    it = kept ? std::next(it) : t.resources.erase(it);
  }
  for (const std::string& name : names) changed |= t.resources.try_emplace(name).second;
  t.due |= changed;
}

void AdsState::WantEndpoints() {
  std::set<std::string> names;
  for (const auto& [name, cluster] : of(XdsType::kCluster).resources) {
    if (cluster.has_value()) names.insert(cluster.eds_name);
  }
  Want(XdsType::kEndpoints, names);
}

void AdsState::Follow(const std::set<std::string>& clusters) {
  Want(XdsType::kCluster, clusters);
  WantEndpoints();
}

void AdsState::StreamBegun(bool another, bool ignore_deletion, TimePoint now) {
  stream_ = AdsStreamState::kBegun;
  answered_ = false;
  ignore_deletion_ = ignore_deletion;
  node_due_ = true;
  settled_at_ = base::DeadlineAfter(now, kSettledAfter);
  for (Type& type : types_) {
    type.nonce.clear();
    type.error.clear();
    type.subscribed = false;
    type.due = !type.resources.empty();
    type.answer_at = base::kNever;
    if (another) type.version.clear();
    for (auto& [name, resource] : type.resources) resource.absent_at = base::kNever;
  }
}

void AdsState::StreamEnded(const std::string& error) {
  if (!well()) error_ = error;
  stream_ = AdsStreamState::kBackoff;
  settled_at_ = base::kNever;
  for (Type& type : types_) {
    type.due = false;
    type.answer_at = base::kNever;
    for (auto& [name, resource] : type.resources) resource.absent_at = base::kNever;
  }
}

void AdsState::Rest() {
  StreamEnded({});
  stream_ = AdsStreamState::kNone;
  error_.clear();
}

std::vector<AdsRequest> AdsState::TakeRequests(TimePoint now) {
  std::vector<AdsRequest> out;
  if (stream_ != AdsStreamState::kBegun && stream_ != AdsStreamState::kConnected) return out;
  for (size_t i = 0; i < kXdsTypes; ++i) {
    Type& type = types_[i];
    const bool answer = now >= type.answer_at;
    if (!std::exchange(type.due, false) && !answer) continue;
    type.answer_at = base::kNever;  // a request for other names has the answer with it
    // A request without names is one for everything, unless there were names before it.
    if (type.resources.empty() && !type.subscribed) continue;
    type.subscribed = true;
    AdsRequest request;
    request.type = static_cast<XdsType>(i);
    for (auto& [name, resource] : type.resources) {
      request.names.push_back(name);
      if (!resource.has_value() && resource.state == XdsResourceState::kRequested && resource.absent_at == base::kNever)
        resource.absent_at = base::DeadlineAfter(now, kAbsentAfter);
    }
    request.version = type.version;
    request.nonce = type.nonce;
    request.error = std::exchange(type.error, {});
    request.with_node = std::exchange(node_due_, false);
    out.push_back(std::move(request));
  }
  return out;
}

void AdsState::Received(const XdsResponse& response, TimePoint now) {
  answered_ = true;
  stream_ = AdsStreamState::kConnected;
  settled_at_ = base::kNever;
  error_.clear();
  // What was not asked for is not answered either: without names an answer would ask for everything.
  if (!response.type || !of(*response.type).subscribed) return;
  Take(*response.type, response, now);
}

void AdsState::Take(XdsType which, const XdsResponse& response, TimePoint now) {
  Type& type = of(which);
  std::string error;
  const auto tell = [&error](const std::string& text) {
    if (error.size() < kErrorBytesMax) error += (error.empty() ? "" : "; ") + text;
  };
  for (const std::string& text : response.errors) tell(text);
  bool news = false;
  for (const XdsResource& sent : response.resources) {
    const auto it = type.resources.find(sent.name);
    if (it == type.resources.end()) continue;  // of another client, say: its mistakes are not ours
    news |= TakeResource(it->second, sent, response.version, now);
    if (!sent.error.empty()) tell(ShownText(sent.name) + ": " + sent.error);
  }
  // With a resource that has no name nothing is known to be missing.
  if (which == XdsType::kCluster && response.errors.empty()) news |= LoseClusters(response);
  if (which == XdsType::kCluster) WantEndpoints();
  if (error.size() > kErrorBytesMax) error.resize(kErrorBytesMax);
  const bool refused = !error.empty();
  // A new version of what is refused for the same reason is no news, so that a server that counts on is paced as well.
  news |= refused ? error != type.refused_error : response.version != type.version || !type.refused_error.empty();
  if (refused) {
    ++type.counts.refused;
    if (news || response.version != type.refused_version) {
      if (const auto suffix = refusals_.Allow(now))
        SLUICE_LOG_WARN("xds: version {} of {} is refused: {}{}", ShownText(response.version), response.type_url, error,
                        *suffix);
    }
  } else {
    type.version = response.version;
    ++type.counts.acked;
  }
  type.refused_version = refused ? response.version : std::string();
  type.refused_error = error;
  type.nonce = response.nonce;
  type.error = std::move(error);
  type.answer_at = std::min(type.answer_at, type.pace.Answer(refused, news, now));  // an answer that is due stays due
}

// Whether it differs from what the last response said of it.
bool AdsState::TakeResource(Resource& resource, const XdsResource& sent, const std::string& version, TimePoint now) {
  resource.absent_at = base::kNever;
  if (std::exchange(resource.deletion_ignored, false))
    SLUICE_LOG_INFO("xds: cluster {} is there again", ShownText(sent.name));
  if (!sent.error.empty()) {
    const bool news = resource.state != XdsResourceState::kNacked || resource.error != sent.error;
    resource.state = XdsResourceState::kNacked;
    resource.error = sent.error;
    resource.refused = version;
    resource.refused_at = now;
    return news;
  }
  const bool news = resource.state != XdsResourceState::kAcked || resource.bytes == nullptr || sent.bytes == nullptr ||
                    *resource.bytes != *sent.bytes;
  resource.state = XdsResourceState::kAcked;
  resource.error.clear();
  resource.refused.clear();
  resource.refused_at.reset();
  resource.version = version;
  resource.note = sent.note;
  resource.bytes = sent.bytes;
  resource.eds_name = sent.eds_name;
  // An equal list stays the same one, so that it is seen to be.
  if (resource.list == nullptr || sent.list == nullptr || !(*resource.list == *sent.list)) resource.list = sent.list;
  resource.updated_at = now;
  return news;
}

// One that has not come yet may be missing because the response is older than the request for it. Whether one was lost.
bool AdsState::LoseClusters(const XdsResponse& response) {
  bool lost = false;
  std::set<std::string_view> sent;
  for (const XdsResource& resource : response.resources) sent.insert(resource.name);
  for (auto& [name, resource] : of(XdsType::kCluster).resources) {
    if (!resource.has_value() || sent.contains(name)) continue;
    if (ignore_deletion_) {
      if (!std::exchange(resource.deletion_ignored, true))
        SLUICE_LOG_WARN("xds: cluster {} is not sent any more; it is kept, as the server's feature says",
                        ShownText(name));
      continue;
    }
    resource = Resource();
    resource.state = XdsResourceState::kDoesNotExist;
    lost = true;
  }
  return lost;
}

TimePoint AdsState::due_at() const {
  TimePoint due = settled_at_;
  for (const Type& type : types_) {
    due = std::min(due, type.answer_at);
    for (const auto& [name, resource] : type.resources) due = std::min(due, resource.absent_at);
  }
  return due;
}

void AdsState::Tick(TimePoint now) {
  if (now >= settled_at_) {
    settled_at_ = base::kNever;
    stream_ = AdsStreamState::kConnected;
    error_.clear();
  }
  for (Type& type : types_) {
    for (auto& [name, resource] : type.resources) {
      if (now < resource.absent_at) continue;
      resource.absent_at = base::kNever;
      resource.state = XdsResourceState::kDoesNotExist;
    }
  }
}

AdsNews AdsState::NewsOf(const std::string& cluster) const {
  AdsNews news;
  // Clusters alone do not show that the list of endpoints is still what it was.
  const bool settled = settled_at_ == base::kNever;
  news.connected = stream_ == AdsStreamState::kConnected && (settled || !of(XdsType::kEndpoints).nonce.empty());
  const auto tell = [&news](const std::string& text) { news.error += (news.error.empty() ? "" : "; ") + text; };
  const auto why = [&tell](const char* kind, const std::string& name, const Resource& resource) {
    if (resource.state == XdsResourceState::kNacked)
      tell(std::string(kind) + " " + ShownText(name) + " was refused: " + resource.error);
    else if (resource.state == XdsResourceState::kDoesNotExist)
      tell(std::string(kind) + " " + ShownText(name) + " does not exist on the server");
  };
  const auto& clusters = of(XdsType::kCluster).resources;
  if (const auto it = clusters.find(cluster); it != clusters.end()) {
    why("the cluster", cluster, it->second);
    const auto& lists = of(XdsType::kEndpoints).resources;
    if (const auto list = lists.find(it->second.eds_name); it->second.has_value() && list != lists.end()) {
      why("the endpoint list", list->first, list->second);
      news.list = list->second.list;
      news.given_at = list->second.updated_at;
    }
  }
  if (!error_.empty()) tell(error_);
  return news;
}

bool AdsState::lacks() const {
  return std::any_of(types_.begin(), types_.end(), [](const Type& type) {
    return std::any_of(type.resources.begin(), type.resources.end(), [](const auto& each) {
      return !each.second.has_value() && each.second.state != XdsResourceState::kDoesNotExist;
    });
  });
}

XdsView AdsState::Describe(TimePoint now, bool resources) const {
  XdsView view;
  view.stream = stream_;
  view.error = error_;
  for (const Type& type : types_) view.counts.push_back(type.counts);
  if (!resources) return view;
  for (size_t i = 0; i < kXdsTypes; ++i) {
    for (const auto& [name, resource] : types_[i].resources) {
      XdsResourceView& out = view.resources.emplace_back();
      out.type_url = kXdsTypeUrls[i];
      out.name = name;
      out.state = resource.state;
      out.version = resource.version;
      out.error = resource.error;
      out.refused = resource.refused;
      out.note = resource.note;
      if (resource.updated_at) out.updated_ago = now - *resource.updated_at;
      if (resource.refused_at) out.refused_ago = now - *resource.refused_at;
      out.bytes = resource.bytes;
    }
  }
  return view;
}

}  // namespace sluice::discovery

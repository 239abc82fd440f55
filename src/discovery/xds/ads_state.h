// AdsState: one end of an ADS stream, state of the world, without I/O: it is told which clusters are followed, what the
// server sends and the time, and says what is to be sent and what each cluster has by it.
//
//   a cluster's name --CDS--> Cluster --service_name--> EDS --> ClusterLoadAssignment: the list
//
// The rules are those of the xDS protocol and of gRPC's clients:
//   - a request names everything that is wanted of its type, and takes the place of those before it; the first of a
//     stream has the node; after a stream has ended the versions are said again, the nonces are not
//   - each response is answered by an ACK, or by a NACK with words; what is right in it is used (A46), and in the place
//     of what is wrong the resource before it stays; answers to what is refused or sent again are paced (answer_pace.h)
//   - a cluster that a response leaves out is gone; of endpoints that says nothing
//   - what has not come kAbsentAfter its request does not exist
//   - a stream that ends is an error if it has brought nothing (A57)
// Bad news changes no list here: a list stays in force until there is another (docs/discovery-xds.md).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log_limit.h"
#include "discovery/list.h"
#include "discovery/xds/answer_pace.h"
#include "discovery/xds/response.h"
#include "discovery/xds/xds_view.h"

namespace sluice::discovery {

// What is to be sent; ads_request.h makes its bytes.
struct AdsRequest {
  XdsType type = XdsType::kCluster;
  std::vector<std::string> names;  // all that are wanted of the type, sorted
  std::string version, nonce;
  std::string error;  // set: a NACK
  bool with_node = false;
};

// What a cluster has by now.
struct AdsNews {
  std::shared_ptr<const List> list;         // null: none yet
  std::optional<base::TimePoint> given_at;  // of the list, or of one that was equal
  std::string error;                        // why the list is not what the server says, or there is none
  bool connected = false;                   // the server could tell of a change
  bool operator==(const AdsNews&) const = default;
};

class AdsState {
 public:
  // The xDS protocol, "Knowing When a Requested Resource Does Not Exist". It is counted from the request: a connection
  // that is not there by then has ended the stream (RpcChannel::kConnectTimeout).
  static constexpr base::Nanos kAbsentAfter = std::chrono::seconds(15);
  // A stream that has lasted so long has reached its server: one that knows the versions may have nothing to say.
  static constexpr base::Nanos kSettledAfter = std::chrono::seconds(10);
  // Of a NACK's words.
  static constexpr size_t kErrorBytesMax = 4096;

  // The clusters that are followed.
  void Follow(const std::set<std::string>& clusters);

  // A stream to a server. `another`: not the server of the stream before, so that its versions mean nothing here.
  void StreamBegun(bool another, bool ignore_deletion, base::TimePoint now);
  // `error`: how it ended, for what is shown if it was not well().
  void StreamEnded(const std::string& error);
  // Nothing is followed, and no stream is wanted.
  void Rest();
  void Received(const XdsResponse& response, base::TimePoint now);

  // Requests to be sent, in their order.
  std::vector<AdsRequest> TakeRequests(base::TimePoint now);
  // When Tick is to be called; kNever.
  base::TimePoint due_at() const;
  void Tick(base::TimePoint now);

  // Of a cluster that is followed.
  AdsNews NewsOf(const std::string& cluster) const;
  // The present stream has brought a response.
  bool answered() const { return answered_; }
  // It has, or has lasted for kSettledAfter.
  bool connected() const { return stream_ == AdsStreamState::kConnected; }
  // It has, or has lasted so long while nothing was lacking: its end is no error, since servers and balancers let no
  // stream grow old.
  bool well() const { return answered_ || (connected() && !lacks()); }
  // Something is followed that the server has not given, nor told to be absent (A71).
  bool lacks() const;
  // Without node and servers. `resources`: with them.
  XdsView Describe(base::TimePoint now, bool resources = true) const;

 private:
  struct Resource {
    XdsResourceState state = XdsResourceState::kRequested;
    std::string version, error, refused, note;
    std::shared_ptr<const std::string> bytes;
    std::string eds_name;
    std::shared_ptr<const List> list;
    std::optional<base::TimePoint> updated_at, refused_at;
    base::TimePoint absent_at = base::kNever;  // the present stream: when it does not exist
    bool deletion_ignored = false;
    bool has_value() const { return bytes != nullptr; }
  };
  struct Type {
    std::map<std::string, Resource> resources;  // those that are wanted
    std::string version, nonce;
    std::string error;                           // of the response that is to be answered
    std::string refused_version, refused_error;  // of the last response, if it was refused
    XdsCounts counts;
    AnswerPace pace;
    base::TimePoint answer_at = base::kNever;  // the response is to be answered
    bool due = false;                          // a request is to be sent
    bool subscribed = false;                   // one was sent on the present stream
  };

  Type& of(XdsType type) { return types_[static_cast<size_t>(type)]; }
  const Type& of(XdsType type) const { return types_[static_cast<size_t>(type)]; }
  void Want(XdsType type, const std::set<std::string>& names);
  void WantEndpoints();
  void Take(XdsType type, const XdsResponse& response, base::TimePoint now);
  bool TakeResource(Resource& resource, const XdsResource& sent, const std::string& version, base::TimePoint now);
  bool LoseClusters(const XdsResponse& response);

  std::array<Type, kXdsTypes> types_;
  AdsStreamState stream_ = AdsStreamState::kNone;
  bool answered_ = false;
  bool ignore_deletion_ = false;
  bool node_due_ = false;
  base::TimePoint settled_at_ = base::kNever;
  std::string error_;  // of the streams that ended without an answer; empty: the last one did not
  base::LogLimit refusals_;
};

}  // namespace sluice::discovery

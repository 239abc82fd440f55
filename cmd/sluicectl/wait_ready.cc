#include "sluicectl/wait_ready.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "sluice/admin/v1/admin.grpc.pb.h"
#include "sluicectl/run.h"

namespace sluice::ctl {
namespace {

namespace v1 = admin::v1;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPeriod{100};

// An answer that a later one will not change.
bool Final(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::CANCELLED:  // the daemon that answered has ended
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return false;
    default:
      return true;
  }
}

bool TakesCalls(const v1::Endpoint& endpoint) {
  if (endpoint.state() != v1::Endpoint::STATE_ACTIVE || endpoint.connection() == "backoff") return false;
  const std::string& health = endpoint.health().state();
  return health != "ejected" && health != "probing" && health != "not_serving";
}

// A name cannot move the reader's cursor.
std::string Plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return text;
}

class Waiter {
 public:
  Waiter(const Args& args, const std::shared_ptr<grpc::Channel>& channel)
      : args_(args), until_(steady_clock::now() + args.wait), stub_(v1::Admin::NewStub(channel)) {}

  int Run() {
    for (;;) {
      if (Look()) return kDone;
      if (status_.error_code() != grpc::StatusCode::OK && Final(status_)) {
        std::fprintf(stderr, "sluicectl: %s\n", status_.error_message().c_str());
        return kRefused;
      }
      const auto left = until_ - steady_clock::now();
      if (left <= left.zero()) return TimeOver();
      std::this_thread::sleep_for(std::min<steady_clock::duration>(left, kPeriod));
    }
  }

 private:
  bool Look() {
    v1::GetServerResponse server;
    if (!Ask(&v1::Admin::Stub::GetServer, v1::GetServerRequest(), &server)) return false;
    missing_ = server.draining() ? "it drains" : "it is not ready";
    if (!server.ready()) return false;
    if (!args_.for_endpoints) return true;
    v1::ListClustersResponse clusters;
    if (!Ask(&v1::Admin::Stub::ListClusters, v1::ListClustersRequest(), &clusters)) return false;
    for (const v1::Cluster& cluster : clusters.clusters()) {
      if (std::any_of(cluster.endpoints().begin(), cluster.endpoints().end(), TakesCalls)) continue;
      missing_ = "no endpoint of cluster " + Plain(cluster.name()) + " takes calls";
      return false;
    }
    return true;
  }

  template <typename Request, typename Response>
  bool Ask(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
           const Request& request, Response* response) {
    grpc::ClientContext context;
    // gRPC's clock is not ours: a span. One answer may be missing though the daemon is there by the next.
    const auto span = std::clamp<steady_clock::duration>(until_ - steady_clock::now(), kPeriod, kAnswerMax);
    context.set_deadline(
        gpr_time_from_millis(std::chrono::duration_cast<std::chrono::milliseconds>(span).count(), GPR_TIMESPAN));
    status_ = (stub_.get()->*method)(&context, request, response);
    answered_ = answered_ || status_.ok();
    if (status_.ok()) return true;
    // A question that --timeout cut short says nothing of the daemon: the last answer stands.
    const bool cut_short = span < kAnswerMax && status_.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!cut_short) missing_ = "no daemon answers any more";
    return false;
  }

  int TimeOver() const {
    if (!answered_) {
      std::fprintf(stderr, "sluicectl: no daemon answers at %s: %s\n", args_.address.c_str(),
                   status_.error_message().c_str());
      return kUnreachable;
    }
    std::fprintf(stderr, "sluicectl: not ready within --timeout: %s\n", missing_.c_str());
    return kRefused;
  }

  static constexpr steady_clock::duration kAnswerMax = std::chrono::seconds(2);

  const Args& args_;
  const steady_clock::time_point until_;
  std::unique_ptr<v1::Admin::Stub> stub_;
  grpc::Status status_;  // of the last request
  std::string missing_;
  bool answered_ = false;
};

}  // namespace

int WaitReady(const Args& args, const std::shared_ptr<grpc::Channel>& channel) { return Waiter(args, channel).Run(); }

}  // namespace sluice::ctl

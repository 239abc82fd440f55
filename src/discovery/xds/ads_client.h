// AdsClient: the process's way to its control plane: one ADS stream, by which the sources of all clusters that follow
// xDS hear (xds_source.h). A task on one worker keeps the stream and the AdsState; sources on any worker are given what
// has changed for their cluster, and their bell rings.
//
// A server that cannot be reached is tried again with a back-off, on a new connection. While something is lacking, the
// next server of the bootstrap file is tried (gRFC A71); where that is in use, the first one is looked at again every
// kFirstServerEvery.
//
// Thread safety: every function from any thread, but where a worker is named.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "discovery/bell.h"
#include "discovery/rpc/backoff.h"
#include "discovery/rpc/rpc_channel.h"
#include "discovery/xds/ads_state.h"
#include "discovery/xds/xds_view.h"
#include "discovery/xds_options.h"
#include "runtime/runtime.h"

namespace sluice::discovery {

class RpcStream;

// What the source of one cluster is told. Made and closed on the source's worker.
class AdsWatch {
 public:
  AdsWatch(std::string cluster, Bell& bell);
  const std::string& cluster() const { return cluster_; }
  // The present state. Any thread.
  AdsNews news() const;

 private:
  friend class AdsClient;
  const std::string cluster_;
  runtime::Worker* const worker_;
  Bell* bell_;  // on the worker only; null: closed
  mutable std::mutex mutex_;
  AdsNews news_;  // under mutex_
};

class AdsClient : public std::enable_shared_from_this<AdsClient> {
 public:
  static constexpr base::Nanos kFirstServerEvery = std::chrono::seconds(60);
  // Between attempts, even if calls cannot reach endpoints.
  static constexpr base::Nanos kHurryPeriod = std::chrono::seconds(1);
  // A message above this is decoded on a helper thread.
  static constexpr size_t kDecodedInlineMax = 16 * 1024;

  // At least one server.
  explicit AdsClient(XdsBootstrap bootstrap);
  ~AdsClient();

  // Once.
  void Start(runtime::Runtime& runtime);
  // It ends soon.
  void Stop();
  // On the source's worker. The bell rings whenever news() has changed, until Close.
  std::shared_ptr<AdsWatch> Watch(const std::string& cluster, Bell& bell);
  void Close(const std::shared_ptr<AdsWatch>& watch);
  // A server that is away is tried again soon.
  void Hurry();

  const XdsBootstrap& bootstrap() const { return bootstrap_; }
  // `resources`: with them.
  XdsView Describe(base::TimePoint now, bool resources = true) const;

 private:
  class Presence;
  struct Session;  // what the task has besides the state
  static runtime::Task<void> Run(std::shared_ptr<AdsClient> self);
  static runtime::Task<void> Open(AdsClient& self, Session& session);
  static runtime::Task<void> Hear(AdsClient& self, Session& session, std::string message);
  static runtime::Task<void> LookAtFirst(AdsClient& self, Session& session);
  bool Reached(const Session& session) const;
  void Ended(Session& session, std::string error, base::TimePoint now);
  base::TimePoint Tell(Session& session, base::TimePoint now) const;
  void Publish();
  void Poke();

  const XdsBootstrap bootstrap_;
  std::atomic<runtime::Worker*> worker_{nullptr};  // that it runs on
  std::atomic<bool> stopped_{false}, hurry_{false};
  Bell* bell_ = nullptr;  // its worker only; null: it does not run

  mutable std::mutex mutex_;
  // Under mutex_; the state is changed by the task only.
  AdsState state_;
  size_t server_ = 0;
  std::vector<std::shared_ptr<AdsWatch>> watches_;
};

}  // namespace sluice::discovery

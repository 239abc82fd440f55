// Follower: the task that follows a cluster's source: it hears it, lets the keeper decide, and puts lists in force.
//
// It stays on the worker that it starts on. The list is put in force on a helper thread, because a ring is built for
// it; the task, and no worker, waits for that.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log_limit.h"
#include "discovery/bell.h"
#include "discovery/list_keeper.h"
#include "discovery/list_sink.h"
#include "discovery/source.h"
#include "discovery/view.h"
#include "runtime/runtime.h"
#include "sync/semaphore.h"

namespace sluice::discovery {

// Ends of answers, as they are counted.
enum class Update : uint8_t { kApplied, kHeld, kUnconfirmed, kRefused, kOverridden, kError };
inline constexpr size_t kUpdates = 6;
std::string_view ToString(Update update);

class Follower : public std::enable_shared_from_this<Follower> {
 public:
  // Called on the worker; the bell outlives the source.
  using MakeSource = std::function<std::unique_ptr<Source>(Bell&)>;
  using OnUpdate = std::function<void(Update)>;

  // `sink` outlives the runtime's tasks. `in_force`: as of ListKeeper. `on_update`: on its worker.
  // `puts`: a permit of it is held while a list is put in force; one for the followers of a process.
  Follower(std::string cluster, const DiscoveryOptions& options, std::shared_ptr<const List> in_force,
           MakeSource make_source, ListSink& sink, std::shared_ptr<sync::Semaphore> puts, OnUpdate on_update = nullptr);

  // Once. `clock`: the runtime's.
  void Start(runtime::Runtime& runtime);
  // It ends soon. A list that it is putting may get in force behind that, where the sink does not refuse it.
  void Stop();
  // Source::Hurry, at once or a kHurryPeriod after the last one.
  static constexpr base::Nanos kHurryPeriod = std::chrono::seconds(1);
  void Hurry();
  // ListKeeper::Again.
  void Again();

  const DiscoveryOptions& options() const { return options_; }
  DiscoveryView Describe(base::TimePoint now) const;
  bool had_list() const;

 private:
  class Presence;
  static runtime::Task<void> Run(std::shared_ptr<Follower> self);
  // Ends its wait, if it runs.
  void Poke();
  void Publish();
  void Tell(const KeeperView& before);
  void TellList(const List& list, double moved) const;

  const std::string cluster_;
  const DiscoveryOptions options_;
  const std::string source_name_;
  const MakeSource make_source_;
  ListSink& sink_;
  const std::shared_ptr<sync::Semaphore> puts_;
  const OnUpdate on_update_;

  std::atomic<runtime::Worker*> worker_{nullptr};  // that it runs on
  std::atomic<bool> stopped_{false}, hurry_{false}, again_{false};
  Bell* bell_ = nullptr;  // its worker only; null: it does not run
  ListKeeper keeper_;     // its task only
  base::LogLimit errors_;

  mutable std::mutex mutex_;
  KeeperView shown_;  // under mutex_: the keeper's, as of the last answer
};

}  // namespace sluice::discovery

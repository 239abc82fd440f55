// Announcer: the task that keeps an endpoint of this process in etcd: one key with a lease, as long as the process is
// ready. When the process is gone the lease runs out, and the key with it.
//
//                 ready              lease and key are there
//      waiting ----------> announcing ----------------------> announced
//                               ^                                 |  a server, the lease or the key is lost
//                               +---------------------------------+
//      from everywhere, when told: withdrawing ----> withdrawn
//
// Each round of it renews the lease and looks whether the key is there, by single RPCs, each with its time; a server
// that does not answer is left for the next one. A lease is known to all servers of a cluster.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "discovery/bell.h"
#include "discovery/etcd/etcd_access.h"
#include "discovery/etcd/etcd_call.h"
#include "discovery/options.h"
#include "discovery/rpc/backoff.h"
#include "runtime/runtime.h"

namespace sluice::discovery {

class Announcer : public std::enable_shared_from_this<Announcer> {
 public:
  // How often it looks whether the process is ready.
  static constexpr base::Nanos kReadyPoll = std::chrono::milliseconds(100);
  // Rounds in the time of a lease. An answer is waited for as long as for the next round: a pause, a server that hangs
  // and the back-off behind it take 1.1 s of a lease of 2 s, and the next server renews it.
  static constexpr int kRounds = 5;
  // Between two attempts that fail, at most.
  static constexpr base::Nanos kBetweenAttempts = std::chrono::milliseconds(600);
  // Removing the key may take so long; then the lease's end has to do it. Then peers have kSettle to hear of it.
  static constexpr base::Nanos kWithdrawMax = std::chrono::seconds(1), kSettle = std::chrono::milliseconds(250);

  enum class State : uint8_t { kWaiting, kAnnouncing, kAnnounced, kWithdrawing, kWithdrawn };

  // `ready`: whether calls may come; on its worker, does not block.
  Announcer(AnnounceOptions options, std::function<bool()> ready);

  // Once.
  void Start(runtime::Runtime& runtime);
  // At most once, behind Start. `done` is called on a worker when the key is gone and peers have heard of it, or the
  // time for that is over; not at all if the runtime shuts down before.
  void Withdraw(std::function<void()> done);

  // In place of Withdraw: the key stays, for another process that announces the same.
  void Leave() {
    keeps_key_.store(true, std::memory_order_relaxed);
    Withdraw(nullptr);
  }

  const AnnounceOptions& options() const { return options_; }
  const std::string& key() const { return key_; }
  State state() const { return state_.load(std::memory_order_relaxed); }
  // Why it is not announced; empty: it is, or nothing is known yet.
  std::string error() const;

 private:
  class Presence;
  // How a round has ended.
  enum class Round : uint8_t { kGood, kAgain, kFailed };

  static runtime::Task<void> Run(std::shared_ptr<Announcer> self);
  runtime::Task<bool> Connect();
  runtime::Task<bool> Authenticate();
  runtime::Task<Round> KeepUp();
  runtime::Task<Round> Put();
  runtime::Task<void> Remove();
  runtime::Task<EtcdCall::Outcome> Call(std::string_view method, std::string request);
  runtime::Task<EtcdCall::Outcome> CallOnce(std::string_view method, const std::string& request);
  runtime::Task<void> Wait(base::Nanos time);
  // How long an answer is waited for.
  base::Nanos AnswerMax() const;
  bool Stopped() const { return withdraw_.load(std::memory_order_seq_cst) && !removing_; }
  Round Failed(std::string error);
  void Enter(State state);

  const AnnounceOptions options_;
  const std::function<bool()> ready_;
  const std::string key_, value_;

  std::atomic<runtime::Worker*> worker_{nullptr};  // that it runs on
  std::atomic<bool> keeps_key_{false};             // before withdraw_
  std::atomic<bool> withdraw_{false};
  std::atomic<State> state_{State::kWaiting};
  Bell* bell_ = nullptr;  // its worker only; null: it does not run

  // Its task only:
  std::optional<base::Random> random_;
  Backoff backoff_{kBetweenAttempts};
  std::optional<EtcdAccess> access_;
  std::string token_;
  size_t server_ = 0;
  int64_t lease_ = 0;  // 0: none
  bool removing_ = false;
  base::TimePoint remove_until_{};

  mutable std::mutex mutex_;
  std::string error_;           // under mutex_
  std::function<void()> done_;  // under mutex_
};

}  // namespace sluice::discovery

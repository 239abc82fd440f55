#include "discovery/follower.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "runtime/blocking_call.h"

namespace sluice::discovery {

using base::TimePoint;

std::string_view ToString(Update update) {
  switch (update) {
    case Update::kApplied:
      return "applied";
    case Update::kHeld:
      return "held";
    case Update::kUnconfirmed:
      return "unconfirmed";
    case Update::kRefused:
      return "refused";
    case Update::kOverridden:
      return "overridden";
    case Update::kError:
      return "error";
  }
  return "error";
}

// While it lives, on its worker, others can ring.
class Follower::Presence {
 public:
  Presence(Follower& follower, Bell& bell) : follower_(follower) {
    follower_.bell_ = &bell;
    follower_.worker_.store(runtime::Worker::Current(), std::memory_order_seq_cst);
  }
  ~Presence() {
    follower_.worker_.store(nullptr, std::memory_order_seq_cst);
    follower_.bell_ = nullptr;
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

 private:
  Follower& follower_;
};

Follower::Follower(std::string cluster, const DiscoveryOptions& options, std::shared_ptr<const List> in_force,
                   MakeSource make_source, ListSink& sink, std::shared_ptr<sync::Semaphore> puts, OnUpdate on_update)
    : cluster_(std::move(cluster)),
      options_(options),
      source_name_(options.Name()),
      make_source_(std::move(make_source)),
      sink_(sink),
      puts_(std::move(puts)),
      on_update_(std::move(on_update)),
      keeper_(options, std::move(in_force)),
      shown_(keeper_.view()) {}

void Follower::Start(runtime::Runtime& runtime) { runtime.SpawnPinOnStart(Run(shared_from_this())); }

// The flag is set before the worker is read, and the worker written before the flag is read: one of both sees the
// other.
void Follower::Poke() {
  if (runtime::Worker* worker = worker_.load(std::memory_order_seq_cst)) {
    worker->Post([self = shared_from_this()] {
      if (self->bell_ != nullptr) self->bell_->Ring();
    });
  }
}

void Follower::Stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  Poke();
}

void Follower::Hurry() {
  if (!hurry_.exchange(true, std::memory_order_seq_cst)) Poke();
}

void Follower::Again() {
  again_.store(true, std::memory_order_seq_cst);
  Poke();
}

runtime::Task<void> Follower::Run(std::shared_ptr<Follower> self) {
  Bell bell;
  const Presence presence(*self, bell);
  const std::unique_ptr<Source> source = self->make_source_(bell);
  ListKeeper& keeper = self->keeper_;
  bool asking = true;  // the first answer comes without being asked for
  TimePoint hurry_at{};
  while (!self->stopped_.load(std::memory_order_seq_cst)) {
    TimePoint now = runtime::Worker::Current()->now();
    if (self->again_.exchange(false, std::memory_order_seq_cst)) keeper.Again(now);
    // A list that the source made now could not be put in force before, and the next would replace it.
    if (now < keeper.merged_until()) {
      co_await bell.Wait(keeper.merged_until());
      continue;
    }
    if (!asking && now >= keeper.ask_at()) {
      source->Ask();
      asking = true;
    }
    TimePoint until = std::min(keeper.due_at(), asking ? base::kNever : keeper.ask_at());
    if (self->hurry_.load(std::memory_order_seq_cst)) {
      if (now >= hurry_at) {
        self->hurry_.store(false, std::memory_order_seq_cst);
        source->Hurry();
        hurry_at = base::DeadlineAfter(now, kHurryPeriod);
      } else {
        until = std::min(until, hurry_at);
      }
    }
    if (now < keeper.due_at()) {
      runtime::Task<Answer> next = source->Next(until);
      Answer answer = co_await std::move(next);
      now = runtime::Worker::Current()->now();
      if (answer.index() == 0) continue;
      if (std::holds_alternative<Unchanged>(answer)) {
        keeper.Confirmed(now);
        self->Publish();
        continue;
      }
      asking = false;
      const KeeperView before = keeper.view();
      if (List* list = std::get_if<List>(&answer))
        keeper.Found(std::make_shared<const List>(std::move(*list)), now);
      else
        keeper.Failed(std::get<std::string>(std::move(answer)), now);
      self->Tell(before);
    }
    if (const std::shared_ptr<const List> list = keeper.Due(now)) {
      std::optional<PutResult> result;
      {
        const base::Result<sync::Permit> permit = co_await self->puts_->Acquire(1);
        if (!permit.ok()) break;  // the process ends
        runtime::BlockingCall put([self, list, moved_max = keeper.moved_max()] {
          return self->sink_.Put(self->cluster_, self->options_, *list, moved_max);
        });
        result = co_await put;
      }
      if (!result) result = PutResult{PutResult::Kind::kLater, 0, "too much work waits for helper threads"};
      const KeeperView before = keeper.view();
      keeper.PutDone(*result, runtime::Worker::Current()->now());
      self->Tell(before);
      if (result->kind == PutResult::Kind::kDone && result->changed) self->TellList(*list, result->moved);
    }
    self->Publish();
  }
}

// Counts the update; logs an error when its words change, with a bound for a source whose words change all the time.
void Follower::Tell(const KeeperView& before) {
  const KeeperView& after = keeper_.view();
  const bool news = after.error != before.error;
  if (news && !after.error.empty()) {
    if (const auto suffix = errors_.Allow(runtime::Worker::Current()->now()))
      SLUICE_LOG_WARN("cluster {}: {}: {}{}", cluster_, source_name_, after.error, *suffix);
  } else if (news && after.state == KeeperState::kCurrent && after.changed_at == before.changed_at) {
    SLUICE_LOG_INFO("cluster {}: {}: its list is in force", cluster_, source_name_);
  }
  if (!on_update_) return;
  if (after.changed_at != before.changed_at) return on_update_(Update::kApplied);
  if (after.answered_at == before.answered_at && after.state == before.state && !after.error.empty())
    return on_update_(Update::kError);
  if (after.state == before.state) return;
  switch (after.state) {
    case KeeperState::kHeld:
      return on_update_(Update::kHeld);
    case KeeperState::kUnconfirmed:
      return on_update_(Update::kUnconfirmed);
    case KeeperState::kRefused:
      return on_update_(Update::kRefused);
    case KeeperState::kOverridden:
      return on_update_(Update::kOverridden);
    case KeeperState::kWaiting:
    case KeeperState::kDue:
    case KeeperState::kCurrent:
      return;
  }
}

void Follower::TellList(const List& list, double moved) const {
  if (list.empty()) {
    SLUICE_LOG_WARN("cluster {}: {} has had no endpoints for {} ms: the list is empty", cluster_, source_name_,
                    options_.empty_after.count());
    return;
  }
  SLUICE_LOG_INFO("cluster {}: list of {} endpoints from {}, {:.1f}% of the keys moved", cluster_, list.size(),
                  source_name_, moved * 100);
}

void Follower::Publish() {
  std::lock_guard lock(mutex_);
  shown_ = keeper_.view();
}

DiscoveryView Follower::Describe(TimePoint now) const {
  DiscoveryView view;
  view.source = source_name_;
  std::lock_guard lock(mutex_);
  view.state = shown_.state;
  view.had_list = shown_.had_list;
  if (shown_.answered_at) view.answered_ago = now - *shown_.answered_at;
  if (shown_.changed_at) view.changed_ago = now - *shown_.changed_at;
  view.error = shown_.error;
  return view;
}

bool Follower::had_list() const {
  std::lock_guard lock(mutex_);
  return shown_.had_list;
}

}  // namespace sluice::discovery

#include "discovery/etcd/announcer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "discovery/etcd/etcd_list.h"
#include "discovery/etcd/etcd_messages.h"
#include "runtime/blocking_call.h"
#include "runtime/sleep.h"

namespace sluice::discovery {

using base::TimePoint;
using Outcome = EtcdCall::Outcome;

namespace {

TimePoint Now() { return runtime::Worker::Current()->now(); }

constexpr int kGivenUp = 1;  // gRPC's CANCELLED

}  // namespace

// While it lives, on its worker, others can ring.
class Announcer::Presence {
 public:
  Presence(Announcer& announcer, Bell& bell) : announcer_(announcer) {
    announcer_.bell_ = &bell;
    announcer_.worker_.store(runtime::Worker::Current(), std::memory_order_seq_cst);
  }
  ~Presence() {
    announcer_.worker_.store(nullptr, std::memory_order_seq_cst);
    announcer_.bell_ = nullptr;
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

 private:
  Announcer& announcer_;
};

Announcer::Announcer(AnnounceOptions options, std::function<bool()> ready)
    : options_(std::move(options)),
      ready_(std::move(ready)),
      key_(options_.etcd.prefix + options_.endpoint.name),
      value_(EtcdValueOf(options_.endpoint)) {}

void Announcer::Start(runtime::Runtime& runtime) { runtime.SpawnPinOnStart(Run(shared_from_this())); }

// The flag is set before the worker is read, and the worker written before the flag is read.
void Announcer::Withdraw(std::function<void()> done) {
  {
    std::lock_guard lock(mutex_);
    done_ = std::move(done);
  }
  withdraw_.store(true, std::memory_order_seq_cst);
  if (runtime::Worker* worker = worker_.load(std::memory_order_seq_cst)) {
    worker->Post([self = shared_from_this()] {
      if (self->bell_ != nullptr) self->bell_->Ring();
    });
  }
}

std::string Announcer::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

void Announcer::Enter(State state) {
  if (state == State::kAnnounced) {
    {
      std::lock_guard lock(mutex_);
      error_.clear();
    }
    if (this->state() != state) SLUICE_LOG_INFO("announced in etcd: {} = {}", key_, value_);
  }
  state_.store(state, std::memory_order_relaxed);
}

Announcer::Round Announcer::Failed(std::string error) {
  error = options_.etcd.servers[server_] + ": " + error;
  bool news = false;
  {
    std::lock_guard lock(mutex_);
    news = error != error_;
    error_ = error;
  }
  if (news) SLUICE_LOG_WARN("announcement {}: {}", key_, error);
  return Round::kFailed;
}

runtime::Task<void> Announcer::Run(std::shared_ptr<Announcer> self) {
  Bell bell;
  const Presence presence(*self, bell);
  self->random_.emplace(static_cast<uint64_t>(Now().time_since_epoch().count()));
  self->server_ = self->random_->Below(self->options_.etcd.servers.size());
  while (!self->Stopped()) {
    base::Nanos pause = kReadyPoll;
    if (self->state() != State::kWaiting || self->ready_()) {
      if (self->state() == State::kWaiting) self->Enter(State::kAnnouncing);
      runtime::Task<Round> keep_up = self->KeepUp();
      const Round round = co_await std::move(keep_up);
      if (round == Round::kGood) {
        self->backoff_.Reset();
        self->Enter(State::kAnnounced);
        pause = base::Nanos(self->options_.lease) / kRounds;
      } else if (!self->Stopped()) {
        self->Enter(State::kAnnouncing);
        pause = round == Round::kAgain ? base::Nanos(0) : self->backoff_.Next(*self->random_);
      }
    }
    runtime::Task<void> wait = self->Wait(pause);
    co_await std::move(wait);
  }
  self->Enter(State::kWithdrawing);
  if (!self->keeps_key_.load(std::memory_order_relaxed)) {
    runtime::Task<void> remove = self->Remove();
    co_await std::move(remove);
  }
  self->access_.reset();
  self->Enter(State::kWithdrawn);
  std::function<void()> done;
  {
    std::lock_guard lock(self->mutex_);
    done = std::move(self->done_);
  }
  if (done) done();
}

// Also ends when it is told to withdraw.
runtime::Task<void> Announcer::Wait(base::Nanos time) {
  const TimePoint until = base::DeadlineAfter(Now(), time);
  while (Now() < until && !Stopped()) co_await bell_->Wait(until);
}

runtime::Task<bool> Announcer::Connect() {
  if (access_) co_return true;
  server_ = (server_ + 1) % options_.etcd.servers.size();
  runtime::BlockingCall open([options = options_.etcd, server = server_] { return EtcdAccess::Open(options, server); });
  std::optional<base::Result<EtcdAccess>> access = co_await open;
  if (!access || !access->ok()) {
    Failed(access ? access->error().detail : "too much work waits for helper threads");
    co_return false;
  }
  access_ = std::move(**access);
  if (access_->user.empty()) co_return true;
  runtime::Task<bool> authenticate = Authenticate();
  co_return co_await std::move(authenticate);
}

runtime::Task<bool> Announcer::Authenticate() {
  token_.clear();
  const std::string request = EtcdAuthenticateRequest(access_->user, access_->password);
  runtime::Task<Outcome> call = CallOnce(kEtcdAuthenticate, request);
  Outcome outcome = co_await std::move(call);
  std::optional<std::string> token = outcome.ok() ? ParseEtcdToken(outcome.answer) : std::nullopt;
  if (token && !token->empty()) {
    token_ = std::move(*token);
    co_return true;
  }
  Failed(outcome.ok() ? "Authenticate is answered without a token" : outcome.error);
  access_.reset();
  co_return false;
}

base::Nanos Announcer::AnswerMax() const {
  return std::min(EtcdCall::kAnswerMax, base::Nanos(options_.lease) / kRounds);
}

runtime::Task<Outcome> Announcer::CallOnce(std::string_view method, const std::string& request) {
  EtcdCall call(access_->channel, method, token_, request, *bell_, Now(), AnswerMax());
  for (;;) {
    const TimePoint now = Now();
    if (std::optional<Outcome> outcome = call.Look(now)) co_return std::move(*outcome);
    if (Stopped() || (removing_ && now >= remove_until_)) co_return Outcome{kGivenUp, {}, "withdrawn"};
    co_await bell_->Wait(removing_ ? std::min(call.deadline(), remove_until_) : call.deadline());
  }
}

// With a new token where the old one is not valid any more. There is an access; without an answer there is none more.
runtime::Task<Outcome> Announcer::Call(std::string_view method, std::string request) {
  runtime::Task<Outcome> call = CallOnce(method, request);
  Outcome outcome = co_await std::move(call);
  if (outcome.token_expired() && !access_->user.empty()) {
    runtime::Task<bool> authenticate = Authenticate();
    const bool good = co_await std::move(authenticate);
    if (!good) co_return outcome;
    runtime::Task<Outcome> again = CallOnce(method, request);
    outcome = co_await std::move(again);
  }
  if (outcome.ok() || outcome.lease_lost() || outcome.code == kGivenUp) co_return outcome;
  Failed(outcome.error);
  access_.reset();
  co_return outcome;
}

runtime::Task<Announcer::Round> Announcer::KeepUp() {
  runtime::Task<bool> connect = Connect();
  const bool connected = co_await std::move(connect);
  if (!connected) co_return Round::kFailed;
  if (lease_ == 0) {
    // Whole seconds: what is left is added.
    const auto ttl = std::chrono::ceil<std::chrono::seconds>(options_.lease).count();
    runtime::Task<Outcome> grant = Call(kEtcdGrant, EtcdGrantRequest(ttl));
    const Outcome granted = co_await std::move(grant);
    if (!granted.ok()) co_return Round::kFailed;
    const std::optional<EtcdLease> lease = ParseEtcdGrant(granted.answer);
    if (!lease || lease->id == 0 || lease->ttl <= 0) co_return Failed("LeaseGrant is answered without a lease");
    lease_ = lease->id;
    runtime::Task<Round> put = Put();
    co_return co_await std::move(put);
  }
  runtime::Task<Outcome> renew = Call(kEtcdKeepAlive, EtcdKeepAliveRequest(lease_));
  const Outcome renewed = co_await std::move(renew);
  const std::optional<EtcdLease> lease = renewed.ok() ? ParseEtcdKeepAlive(renewed.answer) : std::nullopt;
  if (renewed.lease_lost() || (lease && lease->ttl <= 0)) {
    lease_ = 0;
    co_return Round::kAgain;
  }
  if (!lease) co_return renewed.ok() ? Failed("LeaseKeepAlive is answered without a lease") : Round::kFailed;
  runtime::Task<Outcome> look = Call(kEtcdRange, EtcdRangeRequest(key_, {}, 0, 1));
  const Outcome looked = co_await std::move(look);
  if (!looked.ok()) co_return Round::kFailed;
  const std::optional<EtcdPage> page = ParseEtcdPage(looked.answer);
  if (!page) co_return Failed("Range is answered by what is no RangeResponse");
  // A key that is there stays as it is: the process that comes after this one, at the same address, has written it.
  if (!page->keys.empty()) co_return Round::kGood;
  runtime::Task<Round> put = Put();
  co_return co_await std::move(put);
}

runtime::Task<Announcer::Round> Announcer::Put() {
  runtime::Task<Outcome> call = Call(kEtcdPut, EtcdPutRequest(key_, value_, lease_));
  const Outcome outcome = co_await std::move(call);
  if (outcome.lease_lost()) {
    lease_ = 0;
    co_return Round::kAgain;
  }
  co_return outcome.ok() ? Round::kGood : Round::kFailed;
}

// A key that another process has written is not of this lease, and stays.
runtime::Task<void> Announcer::Remove() {
  removing_ = true;
  remove_until_ = base::DeadlineAfter(Now(), kWithdrawMax);
  while (lease_ != 0 && Now() < remove_until_) {
    runtime::Task<bool> connect = Connect();
    const bool connected = co_await std::move(connect);
    if (connected) {
      runtime::Task<Outcome> revoke = Call(kEtcdRevoke, EtcdRevokeRequest(lease_));
      const Outcome revoked = co_await std::move(revoke);
      if (revoked.ok() || revoked.lease_lost()) {
        SLUICE_LOG_INFO("withdrawn from etcd: {}", key_);
        lease_ = 0;
        runtime::SleepUntil settle(base::DeadlineAfter(Now(), kSettle));
        co_await settle;
        co_return;
      }
      if (revoked.code == kGivenUp) break;
    }
    runtime::SleepUntil pause(base::DeadlineAfter(Now(), backoff_.Next(*random_)));
    co_await pause;
  }
  if (lease_ != 0) SLUICE_LOG_WARN("announcement {}: not withdrawn in time; it ends with its lease", key_);
}

}  // namespace sluice::discovery

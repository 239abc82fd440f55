#include "upstream/lone_calls.h"

#include <algorithm>
#include <utility>

namespace sluice::upstream {

using base::ErrorKind;
using base::MakeError;

class LoneCalls::One final : private http2::ConnectionEvents, private runtime::Timer {
  // kGreeted: the server's SETTINGS have come. kOver: it has failed or closed, and is forgotten.
  enum class State : uint8_t { kWaiting, kDialing, kGreeted, kOver };

 public:
  One(LoneCalls& all, PoolWaiter& waiter, const http2::ConnectionOptions& options, base::TimePoint deadline)
      : all_(all), context_(all.context_), options_(options), deadline_(deadline) {
    waiter.waiting_ = nullptr;
    waiter_.PushBack(waiter);
  }
  ~One() { context_.worker.timers().Disarm(*this); }

  bool waits() const { return state_ == State::kWaiting; }
  // The call has left.
  bool idle() const { return waiter_.empty(); }
  bool dialing() const { return state_ == State::kDialing; }
  void Wait() { context_.worker.timers().Arm(*this, deadline_); }
  void Dial() {
    state_ = State::kDialing;
    dialer_ = all_.owner_.DialLone(
        deadline_, [this](base::Result<std::unique_ptr<net::Stream>> result) { OnDialed(std::move(result)); });
  }
  void Drain(const base::Error& error) {
    if (state_ == State::kGreeted) return connection_->Drain();
    Fail(error);
  }
  void Close(std::string_view why) {
    if (state_ == State::kGreeted) connection_->Close(http2::ErrorCode::kNoError, why);
  }
  // No call is on it. May be called from a callback of the connection.
  // It comes back here: CloseNow writes, and a connection that breaks says GOAWAY once more.
  void Fail(const base::Error& error) {
    if (std::exchange(state_, State::kOver) == State::kOver) return;
    dialer_.reset();
    context_.worker.timers().Disarm(*this);
    if (connection_ != nullptr && !connection_->closed()) connection_->CloseNow(error.detail);
    PoolWaiter* waiter = waiter_.PopFront();
    if (connection_ != nullptr) all_.owner_.OnLoneClosed(connection_->session());
    all_.Forget(*this);
    if (waiter != nullptr) waiter->OnNoConnection(error);
  }

  // It is destroyed next.
  void CloseNow(const base::Error& error) {
    dialer_.reset();
    if (PoolWaiter* waiter = waiter_.PopFront()) waiter->OnNoConnection(error);
    if (connection_ == nullptr) return;
    all_.owner_.OnLoneClosed(connection_->session());
    connection_->session().TransportClosed(error.detail, false, http2::Session::Ending::kDead);
  }

 private:
  void OnDialed(base::Result<std::unique_ptr<net::Stream>> result) {
    dialer_.reset();
    if (!result) return Fail(result.error());
    http2::ConnectionEvents& events = *this;
    connection_ =
        std::make_unique<http2::Connection>(context_, std::move(*result), http2::Role::kClient, options_, events);
    all_.owner_.OnLoneConnected(*connection_);
    connection_->Start();
  }

  http2::StreamEvents* OnRequest(http2::Connection&, http2::Stream&, http2::HeaderList&&, bool) override {
    return nullptr;
  }
  void OnCapacity(http2::Connection& connection) override {
    if (state_ == State::kOver) return;
    if (state_ == State::kDialing) {
      if (!connection.session().settings_received() || !connection.usable()) return;
      state_ = State::kGreeted;
      context_.worker.timers().Disarm(*this);
      all_.DialNext();
      if (PoolWaiter* waiter = waiter_.PopFront()) waiter->OnConnection(connection);
    }
    if (connection.session().open_streams() == 0) connection.Drain();
  }
  void OnGoaway(http2::Connection&) override {
    if (state_ == State::kDialing)
      Fail(MakeError(ErrorKind::kConnectFailed, "the endpoint takes no calls on a new connection"));
  }
  void OnClosed(http2::Connection&, std::string_view why) override {
    if (state_ == State::kOver) return;
    if (state_ == State::kDialing)
      return Fail(MakeError(ErrorKind::kConnectFailed, "a new connection ended: " + std::string(why)));
    state_ = State::kOver;
    all_.owner_.OnLoneClosed(connection_->session());
    all_.Forget(*this);
  }
  void OnTimer(base::TimePoint) override {
    Fail(MakeError(ErrorKind::kConnectTimeout, "a new connection was not there in connect_timeout"));
  }

  LoneCalls& all_;  // may go before one that has been forgotten
  http2::ConnectionContext& context_;
  const http2::ConnectionOptions options_;
  const base::TimePoint deadline_;
  base::IntrusiveList<PoolWaiter, PoolWaiter> waiter_;  // the call, until it has its connection or leaves
  std::unique_ptr<net::Attempt> dialer_;
  std::unique_ptr<http2::Connection> connection_;
  State state_ = State::kWaiting;
};

LoneCalls::LoneCalls(http2::ConnectionContext& context, Owner& owner) : context_(context), owner_(owner) {}
LoneCalls::~LoneCalls() { SLUICE_CHECK(all_.empty()); }

bool LoneCalls::Add(PoolWaiter& waiter, const http2::ConnectionOptions& options, base::TimePoint deadline) {
  if (all_.size() >= kLoneMax) return false;
  all_.push_back(std::make_unique<One>(*this, waiter, options, deadline));
  all_.back()->Wait();
  DialNext();
  return true;
}

void LoneCalls::DialNext() {
  const auto dialing = std::count_if(all_.begin(), all_.end(), [](const auto& one) { return one->dialing(); });
  if (static_cast<size_t>(dialing) >= kDialsMax) return;
  const auto next = std::find_if(all_.begin(), all_.end(), [](const auto& one) { return one->waits(); });
  if (next == all_.end()) return;
  if (!(*next)->idle()) return (*next)->Dial();
  (*next)->Fail(MakeError(ErrorKind::kConnectFailed, "its call has left"));  // and the one behind it is looked at
}

// The youngest first: none that waits is dialed in the place of one that has failed.
void LoneCalls::Drain(const base::Error& error) {
  std::vector<One*> all;
  for (const auto& one : all_) all.push_back(one.get());
  for (; !all.empty(); all.pop_back()) all.back()->Drain(error);
}

void LoneCalls::Close(std::string_view why) {
  std::vector<One*> all;
  for (const auto& one : all_) all.push_back(one.get());
  for (One* one : all) one->Close(why);
}

void LoneCalls::CloseNow(const base::Error& error) {
  while (!all_.empty()) {
    const std::unique_ptr<One> one = std::move(all_.back());
    all_.pop_back();
    one->CloseNow(error);
  }
}

// It may be on the stack: it is destroyed when the turn's work is done.
void LoneCalls::Forget(One& one) {
  const auto it = std::find_if(all_.begin(), all_.end(), [&](const auto& each) { return each.get() == &one; });
  SLUICE_CHECK(it != all_.end());
  context_.worker.Post([dead = std::shared_ptr<One>(std::move(*it))] {});
  all_.erase(it);
  if (all_.empty()) return owner_.OnNoLone();
  DialNext();
}

}  // namespace sluice::upstream

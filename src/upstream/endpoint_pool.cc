#include "upstream/endpoint_pool.h"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/log.h"

namespace sluice::upstream {

using base::ErrorKind;
using base::MakeError;

EndpointPool::EndpointPool(PoolSet& owner, std::shared_ptr<Endpoint> endpoint, http2::ConnectionContext& context)
    : owner_(owner),
      endpoint_(std::move(endpoint)),
      cell_(endpoint_->MakeCell(context.worker.index())),
      series_(endpoint_->series().of(context.worker.index())),
      context_(context) {
  endpoint_->set_pool(context_.worker.index(), this);
}

EndpointPool::~EndpointPool() {
  SLUICE_CHECK(connections_.empty());
  TellProbe("the pool has gone");
  health_.reset();
  context_.worker.timers().Disarm(*this);
  context_.worker.timers().Disarm(pending_);
  endpoint_->set_link(context_.worker.index(), EndpointLink::kIdle);
  endpoint_->set_pool(context_.worker.index(), nullptr);
}

http2::Connection* EndpointPool::Ready() {
  if (!waiters_.empty()) return nullptr;
  http2::Connection* const connection = FindRoom();
  if (connection != nullptr && MayBeWorn(connection->session())) [[unlikely]]
    DialBeside(connection->session());
  return connection;
}

void EndpointPool::BeginCall(bool whole) {
  ++in_flight_;
  uint32_t w = context_.worker.index();
  ++endpoint_->load().of(w);
  endpoint_->metrics().in_flight->Add(w, 1);
  cell_.Sent(whole);
}

void EndpointPool::EndCall(Outcome outcome, size_t status, Cause cause, uint64_t key) {
  --in_flight_;
  const uint32_t w = context_.worker.index();
  --endpoint_->load().of(w);
  endpoint_->metrics().in_flight->Add(w, -1);
  if (cause != Cause::kNone) endpoint_->Report(w, Outcome::kFailed);  // a status that is evidence, too
  series_.Ended(status);
  if (judged_) [[likely]] {
    if (cause == Cause::kNone) {
      if (outcome == Outcome::kAnswered) cell_.Good();
    } else {
      CountFailure(cause, key);
    }
  }
  if (feedback_ != nullptr) feedback_->OnOutcome(*endpoint_, w, outcome);
  FinishDrainIfIdle();
}

void EndpointPool::Report(Outcome outcome, uint64_t count) {
  const uint32_t w = context_.worker.index();
  endpoint_->Report(w, outcome, count);
  if (feedback_ != nullptr) feedback_->OnOutcome(*endpoint_, w, outcome);
}

size_t EndpointPool::UsableConnections() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [this](const auto& c) { return c.get() != greeting_ && c->usable(); }));
}

// One connect at a time: enough, as a connection carries many calls and the next connect follows while calls wait.
void EndpointPool::DialIfNeeded() {
  if (closing_ || draining_ || connecting() || waiters_.empty()) return;
  const size_t usable = UsableConnections();
  if (usable >= options_->connections_max) return;
  if (context_.worker.now() < retry_at_) {
    // Calls wait for the connections there are, and for the next connect.
    if (usable == 0)
      FailWaiters(MakeError(ErrorKind::kConnectFailed, "endpoint " + endpoint_->name() + " is in back-off"));
    else
      context_.worker.timers().Arm(*this, retry_at_);
    return;
  }
  Dial();
}

void EndpointPool::Dial() {
  if (able_until_ == base::kNever && UsableConnections() == 0)
    able_until_ = base::DeadlineAfter(context_.worker.now(), kConnectGrace);
  const base::TimePoint deadline = connect_ends_ =
      base::DeadlineAfter(context_.worker.now(), options_->connect_timeout);
  dialer_ =
      DialLone(deadline, [this](base::Result<std::unique_ptr<net::Stream>> result) { OnDialed(std::move(result)); });
  UpdateLink();
}

// base x 2^n up to max, with 20% jitter so that the workers of a fleet do not come back together.
void EndpointPool::BackOff() {
  const ClusterOptions& options = *options_;
  double wait =
      std::min(static_cast<double>(options.backoff_max.count()),
               static_cast<double>(options.backoff_base.count()) * std::exp2(std::min(failures_in_row_, 30u)));
  wait *= 0.8 + 0.4 * context_.worker.random().Unit();
  ++failures_in_row_;
  retires_ = false;
  NoteLoss();
  retry_at_ = context_.worker.now() + std::chrono::microseconds(static_cast<int64_t>(wait * 1000));
  // One beside others, which no call waits for, costs none: its failure is no evidence.
  if (UsableConnections() > 0 && waiters_.empty() && probe_ == nullptr) return;
  Report(Outcome::kConnectFailed);
  if (judged_) cell_.Bad(Cause::kConnect);
}

void EndpointPool::OnDialed(base::Result<std::unique_ptr<net::Stream>> result) {
  dialer_.reset();
  const ClusterOptions& options = *options_;
  if (!result) {
    BackOff();
    const int problem = result.error().os_error;  // others, such as too few descriptors, say nothing of the port
    if (problem == ECONNREFUSED || problem == ENOENT) endpoint_->NoteRefused();
    ConnectFailed(result.error().detail, result.error().kind == ErrorKind::kConnectFailed);
    SLUICE_LOG_DEBUG("cluster {} endpoint {}: {}", endpoint_->cluster(), endpoint_->name(), result.error().detail);
    UpdateLink();
    if (UsableConnections() == 0)
      FailWaiters(result.error());
    else
      DialIfNeeded();
    return;
  }
  Report(Outcome::kConnected);
  endpoint_->metrics().connections->Add(context_.worker.index(), 1);
  http2::ConnectionOptions connection_options{options.http2, options.keepalive, options.life};
  http2::ConnectionEvents& events = *this;  // the base is private: convert here
  connections_.push_back(std::make_unique<http2::Connection>(context_, std::move(*result), http2::Role::kClient,
                                                             connection_options, events));
  http2::Connection& connection = *connections_.back();
  connection.session().SetScheme(options.tls.enabled);
  // The kernel accepts also for a process that hangs, and a TLS server may refuse our certificate behind the handshake.
  // So calls wait for its SETTINGS, which a server sends first and at once (RFC 9113 3.4); until then each can still go
  // elsewhere.
  greeting_ = &connection;
  context_.worker.timers().Arm(*this, connect_ends_);
  connection.Start();
  UpdateLink();
}

void EndpointPool::OnGreeted() {
  greeting_ = nullptr;
  gone_away_ = 0;
  able_until_ = base::kNever;
  retires_ = false;
  endpoint_->NoteConnected();
  context_.worker.timers().Disarm(*this);
  TellProbe("");
  UpdateLink();
  ServeWaiters();
}

// Into back-off: an endpoint that accepts connections and serves no calls would otherwise be dialed in a loop.
void EndpointPool::GreetingFailed(base::Error error) {
  greeting_ = nullptr;
  context_.worker.timers().Disarm(*this);
  BackOff();
  ConnectFailed(error.detail);
  UpdateLink();
  if (UsableConnections() == 0) FailWaiters(error);
  DialIfNeeded();
}

// connect_timeout has passed.
void EndpointPool::OnNoGreeting() {
  http2::Connection& connection = *greeting_;
  Report(Outcome::kTimedOut);
  if (auto note = context_.peer_log.Allow(context_.worker.now())) {
    SLUICE_LOG_WARN("cluster {} endpoint {}: connected, but no SETTINGS came within connect_timeout{}",
                    endpoint_->cluster(), endpoint_->name(), *note);
  }
  connection.CloseNow("no SETTINGS in time");
  Forget(connection);
  GreetingFailed(
      MakeError(ErrorKind::kConnectTimeout, "endpoint " + endpoint_->name() + " accepts connections and says nothing"));
}

// Its end has come. It may be on the stack: it is destroyed when the turn's work is done.
void EndpointPool::Forget(http2::Connection& connection) {
  auto it =
      std::find_if(connections_.begin(), connections_.end(), [&](const auto& c) { return c.get() == &connection; });
  SLUICE_CHECK(it != connections_.end());
  if (connection.session().lost_streams()) endpoint_->metrics().lost->Add(context_.worker.index());
  context_.worker.Post([dead = std::shared_ptr<http2::Connection>(std::move(*it))] {});
  connections_.erase(it);
  endpoint_->metrics().connections->Add(context_.worker.index(), -1);
}

void EndpointPool::UpdateLink() {
  EndpointLink link = EndpointLink::kIdle;
  if (connections_.size() > (greeting_ != nullptr ? 1 : 0))
    link = EndpointLink::kConnected;
  else if (connecting())
    link = EndpointLink::kConnecting;
  else if (context_.worker.now() < retry_at_)
    link = EndpointLink::kBackoff;
  endpoint_->set_link(context_.worker.index(), link);
}

void EndpointPool::OnCapacity(http2::Connection& connection) {
  if (&connection != greeting_) {
    LeaveWorn(connection);
    return ServeWaiters();
  }
  if (connection.session().settings_received() && connection.usable()) OnGreeted();
}

// A connection that carried calls has ended because the endpoint broke HTTP/2 on it. Once may be one bad response, and
// the next connection is as good as before; an endpoint that floods, or breaks HTTP/2 again soon, goes into back-off.
void EndpointPool::NoteBroken(const http2::Session& session) {
  const base::TimePoint now = context_.worker.now();
  if (now < retry_at_) return;
  const bool again = now < broken_until_;
  broken_until_ = base::DeadlineAfter(now, options_->backoff_max);
  if (again || session.abuse() != http2::FloodKind::kNone) return BackOff();
  failures_in_row_ = 0;
}

void EndpointPool::OnGoaway(http2::Connection& connection) {
  const base::TimePoint now = context_.worker.now();
  const uint32_t resets = connection.session().recent_resets().Count(now);
  if (connection.session().blamed() && resets >= kResetsMin) endpoint_->LearnResets(resets, now);
  MoveHealth(connection);
  if (&connection != greeting_) {
    if (connection.session().failed()) NoteBroken(connection.session());
    return ReplaceLost();
  }
  // A server that drains says so right behind its SETTINGS. Its successor at the address is tried at once, but only
  // kGoneAwayMax times in a row.
  if (connection.session().settings_received() && connection.why().empty() && ++gone_away_ <= kGoneAwayMax) {
    greeting_ = nullptr;
    context_.worker.timers().Disarm(*this);
    ConnectFailed("the endpoint drains its new connections");
    UpdateLink();
    return DialIfNeeded();
  }
  std::string text = "endpoint " + endpoint_->name() + " accepts connections and takes no calls";
  if (!connection.why().empty()) text.append(": ").append(connection.why());
  GreetingFailed(MakeError(ErrorKind::kConnectFailed, std::move(text)));
}

void EndpointPool::OnTimeout(http2::Connection& connection, http2::Timeout which, size_t streams) {
  if (which == http2::Timeout::kIdle || which == http2::Timeout::kAge) {  // in good order
    retires_ |= connection.usable();                                      // else it was left before
    return;
  }
  // No call has lost anything by it.
  const bool asks = health_ != nullptr && health_->connection() == &connection;
  if (which == http2::Timeout::kAgeGrace && asks && connection.session().open_streams() == 1) return;
  Report(Outcome::kTimedOut, std::max<size_t>(streams, 1));
  if (auto note = context_.peer_log.Allow(context_.worker.now())) {
    SLUICE_LOG_WARN("cluster {} endpoint {}: {}_timeout: {}{}", endpoint_->cluster(), endpoint_->name(),
                    ToString(which), streams > 0 ? std::to_string(streams) + " calls reset" : "connection ended",
                    *note);
  }
}

void EndpointPool::OnClosed(http2::Connection& connection, std::string_view why) {
  const bool greeting = &connection == greeting_;
  if (greeting && options_->tls.enabled) {
    // A TLS 1.3 server that does not like our certificate looks so: the handshake was done before it knew.
    SLUICE_LOG_WARN("cluster {} endpoint {}: ended the connection behind the TLS handshake: {}", endpoint_->cluster(),
                    endpoint_->name(), why);
  }
  SLUICE_LOG_DEBUG("cluster {} endpoint {}: connection ended: {}", endpoint_->cluster(), endpoint_->name(), why);
  if (!connection.session().failed() && connection.session().stats().streams_opened > 0)
    failures_in_row_ = 0;  // it was of use
  Forget(connection);
  if (greeting) {
    return GreetingFailed(
        MakeError(ErrorKind::kConnectFailed,
                  "endpoint " + endpoint_->name() + " ended the connection before its SETTINGS: " + std::string(why)));
  }
  ReplaceLost();
  FinishDrainIfIdle();
}

void EndpointPool::StartDrain() {
  if (draining_ || closing_) return;
  draining_ = true;
  TellProbe("the endpoint has left the list");
  health_.reset();
  dialer_.reset();
  greeting_ = nullptr;  // it drains as the others do
  UpdateLink();
  FailWaiters(MakeError(ErrorKind::kDraining, "endpoint " + endpoint_->name() + " was removed"));
  std::vector<http2::Connection*> all;
  for (const auto& connection : connections_) all.push_back(connection.get());
  for (http2::Connection* connection : all) connection->Drain();
  if (lone_ != nullptr) lone_->Drain(MakeError(ErrorKind::kDraining, "endpoint " + endpoint_->name() + " was removed"));
  context_.worker.timers().Arm(*this, base::DeadlineAfter(context_.worker.now(), options_->drain_timeout));
  FinishDrainIfIdle();
}

void EndpointPool::OnTimer(base::TimePoint) {
  if (!draining_) return greeting_ != nullptr ? OnNoGreeting() : DialIfNeeded();  // or the back-off is over
  // drain_timeout: what still runs is cut off.
  std::vector<http2::Connection*> all;
  for (const auto& connection : connections_) all.push_back(connection.get());
  for (http2::Connection* connection : all) connection->Close(http2::ErrorCode::kNoError, "drain_timeout has passed");
  if (lone_ != nullptr) lone_->Close("drain_timeout has passed");
}

void EndpointPool::CloseNow() {
  closing_ = true;
  TellProbe("the proxy stops");
  health_.reset();
  dialer_.reset();
  greeting_ = nullptr;
  context_.worker.timers().Disarm(*this);
  FailWaiters(MakeError(ErrorKind::kDraining, "the proxy is stopping"));
  if (lone_ != nullptr) lone_->CloseNow(MakeError(ErrorKind::kDraining, "the proxy is stopping"));
  uint32_t w = context_.worker.index();
  while (!connections_.empty()) {
    auto connection = std::move(connections_.back());
    connections_.pop_back();
    connection->session().TransportClosed("the proxy is stopping");
    endpoint_->metrics().connections->Add(w, -1);
  }
}

void EndpointPool::FinishDrainIfIdle() {
  const bool ended = connections_.empty() && (lone_ == nullptr || lone_->empty());
  if (draining_ && !closing_ && in_flight_ == 0 && ended) owner_.DestroyLater(*this);
}

PoolSet::~PoolSet() { CloseAll(); }

EndpointPool* PoolSet::Get(const std::shared_ptr<Endpoint>& endpoint,
                           const std::shared_ptr<const ClusterOptions>& options,
                           const std::shared_ptr<Feedback>& feedback) {
  EndpointPool* pool = endpoint->pool(context_.worker.index());
  if (pool == nullptr) {
    pools_.push_back(std::make_unique<EndpointPool>(*this, endpoint, context_));
    pool = pools_.back().get();
  }
  if (pool->options_ != options) {
    pool->options_ = options;
    pool->feedback_ = feedback;
    pool->judged_ = options->ejection.enabled;
  }
  return pool;
}

void PoolSet::Drain(Endpoint& endpoint) {
  if (EndpointPool* pool = endpoint.pool(context_.worker.index())) pool->StartDrain();
}

void PoolSet::DestroyLater(EndpointPool& pool) {
  auto it = std::find_if(pools_.begin(), pools_.end(), [&](const auto& p) { return p.get() == &pool; });
  if (it == pools_.end()) return;  // on its way already
  context_.worker.Post([dead = std::shared_ptr<EndpointPool>(std::move(*it))] {});
  pools_.erase(it);
}

void PoolSet::CloseAll() {
  closed_ = true;
  for (auto& pool : pools_) pool->CloseNow();
  std::erase_if(pools_, [](const auto& pool) { return pool->in_flight() == 0; });
}

}  // namespace sluice::upstream

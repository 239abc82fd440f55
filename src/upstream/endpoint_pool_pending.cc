// Calls that wait for room on a pool's connections: in their order, bounded in number (pending_calls_max) and in time
// (pending_timeout). Where no stream has been given for kConnectGrace, further calls pass the endpoint over.
#include <algorithm>
#include <string>

#include "base/log.h"
#include "upstream/endpoint_pool.h"

namespace sluice::upstream {

using base::ErrorKind;
using base::MakeError;

http2::Connection* EndpointPool::FindRoom() const {
  for (const auto& connection : connections_) {
    if (connection.get() != greeting_ && connection->CanOpen()) {
      if (MayBeWorn(connection->session())) [[unlikely]]
        return FindFresh();
      return connection.get();
    }
  }
  return nullptr;
}

// The backend has not returned a connection's window, so requests that are not read there would hold up new ones; or so
// many streams of it were reset that the server may end it for the next ones. A further connection has a window and a
// count of its own, and Ready has one made; until it is there, the best of those with room has to do.
http2::Connection* EndpointPool::FindFresh() const {
  const base::TimePoint now = context_.worker.now();
  const uint32_t resets_max = endpoint_->resets_max();
  http2::Connection* best = nullptr;
  uint32_t best_resets = 0;  // 0: below the bound
  for (const auto& connection : connections_) {
    if (connection.get() == greeting_ || !connection->CanOpen()) continue;
    const http2::Session& session = connection->session();
    uint32_t resets = session.recent_resets().Count(now);
    if (resets < resets_max) resets = 0;
    if (resets == 0 && !session.window_is_low()) return connection.get();
    if (best == nullptr || resets < best_resets ||
        (resets == best_resets && session.send_window() > best->session().send_window())) {
      best = connection.get();
      best_resets = resets;
    }
  }
  return best;
}

// The best there is, for a call, is this one.
void EndpointPool::DialBeside(const http2::Session& worn) {
  if (worn.window_is_low()) return Reconnect();
  const base::TimePoint now = context_.worker.now();
  endpoint_->EaseResets(now);
  if (now < worn_until_ || !HasManyResets(worn)) return;
  worn_until_ = base::DeadlineAfter(now, kBetweenWorn);
  Reconnect();
}

// A call has ended on one with many resets: with its last one it makes place, where another takes the calls.
void EndpointPool::LeaveWorn(http2::Connection& connection) {
  const http2::Session& session = connection.session();
  if (session.open_streams() > 0 || session.recent_resets().count() < endpoint_->resets_max()) return;
  const http2::Connection* const other = FindRoom();
  if (other == nullptr || other == &connection || !HasManyResets(session)) return;
  connection.Drain();
}

bool EndpointPool::Wait(Waiter& waiter) {
  if (waiting_ >= options_->pending_calls_max) return false;
  waiter.waiting_ = &waiting_;
  waiters_.PushBack(waiter);
  ++waiting_;
  NoteStarved();
  ArmPending(waiter.WaitsSince() + options_->pending_timeout);
  DialIfNeeded();
  if (health_ != nullptr) TendHealth();
  return true;
}

void EndpointPool::ServeWaiters() {
  if (serving_) return;  // a waiter's stream ended at once; the loop below goes on
  serving_ = true;
  while (!waiters_.empty()) {
    http2::Connection* connection = FindRoom();
    if (connection == nullptr) break;
    able_until_ = base::kNever;
    --waiting_;
    waiters_.PopFront()->OnConnection(*connection);
  }
  serving_ = false;
  NoteStarved();
  DialIfNeeded();
  if (health_ != nullptr) TendHealth();
}

void EndpointPool::FailWaiters(const base::Error& error) {
  base::IntrusiveList<Waiter, Waiter> failed;
  failed.Splice(waiters_);
  while (Waiter* waiter = failed.PopFront()) {
    --waiting_;
    waiter->OnNoConnection(error);
  }
}

// Calls wait although connections are there. A stream that ends or a higher limit of the server's ends it; a server
// that gives none, or whose streams all last, must not keep the calls that other endpoints could take.
void EndpointPool::NoteStarved() {
  if (!waiters_.empty() && able_until_ == base::kNever && UsableConnections() > 0)
    able_until_ = base::DeadlineAfter(context_.worker.now(), kConnectGrace);
}

// The time until which calls went to it without more is over.
bool EndpointPool::TakesCallsAgain() {
  if (waiters_.empty() && FindRoom() != nullptr) {
    able_until_ = base::kNever;
    return Usable();
  }
  Reconnect();
  return false;
}

bool EndpointPool::AllowsNone() const {
  bool any = false;
  for (const auto& connection : connections_) {
    if (connection.get() == greeting_ || !connection->usable()) continue;
    const http2::Session& session = connection->session();
    if (session.open_streams() > 0 || session.peer_concurrent_streams_max() > 0) return false;
    any = true;
  }
  return any;
}

void EndpointPool::ArmPending(base::TimePoint when) {
  if (!std::exchange(pending_.armed, true)) context_.worker.timers().Arm(pending_, when);
}

void EndpointPool::OnPending(base::TimePoint now) {
  if (waiters_.empty()) return;
  if (UsableConnections() == 0 && connecting()) return ArmPending(connect_ends_);  // connect_timeout bounds the wait
  const base::Nanos bound = options_->pending_timeout;
  base::IntrusiveList<Waiter, Waiter> late;
  uint32_t count = 0;
  for (; !waiters_.empty() && now - waiters_.front()->WaitsSince() >= bound; ++count) {
    late.PushBack(*waiters_.PopFront());
  }
  if (!waiters_.empty()) ArmPending(waiters_.front()->WaitsSince() + bound);
  if (count == 0) return;
  // Streams that callers keep open for long are no fault of the endpoint's; a limit of 0 is.
  const bool none = AllowsNone();
  const base::Error error = MakeError(ErrorKind::kPendingTimeout,
                                      "endpoint " + endpoint_->name() + " gave no stream in pending_timeout (" +
                                          std::to_string(options_->pending_timeout.count()) + " ms): " +
                                          (none ? "its server allows none (SETTINGS_MAX_CONCURRENT_STREAMS is 0)"
                                                : "all that its server allows are in use"),
                                      base::ErrorSource::kUpstream);
  if (auto note = context_.peer_log.Allow(context_.worker.now())) {
    SLUICE_LOG_WARN("cluster {}: {}; {} calls go elsewhere or fail{}", endpoint_->cluster(), error.detail, count,
                    *note);
  }
  while (Waiter* waiter = late.PopFront()) {
    --waiting_;
    if (none && judged_) cell_.Bad(Cause::kNoStream);
    waiter->OnNoConnection(error);
  }
}

}  // namespace sluice::upstream

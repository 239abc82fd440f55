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
      if (connection->session().window_is_low()) [[unlikely]]
        return FindWindow();
      return connection.get();
    }
  }
  return nullptr;
}

// The backend has not returned the connection's window, so requests that are not read there would hold up new ones. A
// further connection has a window of its own, and Ready has one made; until it is there, the widest of those with room
// has to do.
http2::Connection* EndpointPool::FindWindow() const {
  http2::Connection* widest = nullptr;
  for (const auto& connection : connections_) {
    if (connection.get() == greeting_ || !connection->CanOpen()) continue;
    if (!connection->session().window_is_low()) return connection.get();
    if (widest == nullptr || connection->session().send_window() > widest->session().send_window())
      widest = connection.get();
  }
  return widest;
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

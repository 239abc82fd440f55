// A pool's Watch or Check: where it finds a connection, and when it gives one up. One at a time; it asks for a
// connection of its own only where there is none at all, and that one is for calls then as any other.
#include <utility>

#include "upstream/endpoint_pool.h"

namespace sluice::upstream {

using Kind = HealthEnd::Kind;

void EndpointPool::AskHealth(std::shared_ptr<HealthReport> report, bool watch) {
  if (health_ != nullptr) health_->Stop({Kind::kMoved, 0, "another took its place"});
  health_ = std::make_unique<HealthStream>(std::move(report), watch);
  health_dialed_ = false;
  if (closing_ || draining_)
    return health_->Stop({Kind::kMoved, 0, "the endpoint has left the list, or the proxy stops"});
  TendHealth();
}

void EndpointPool::StopHealth(const HealthReport* report) {
  if (health_ != nullptr && health_->report() == report) health_->Stop({});
}

// Calls go first, both for room that has come and for room that they lack: no call waits behind a health stream.
void EndpointPool::TendHealth() {
  if (health_->waiting()) {
    if (!waiters_.empty()) return;
    if (http2::Connection* connection = FindRoom()) return health_->Open(*connection, *options_, endpoint_->address());
    if (UsableConnections() > 0 || connecting()) return;
    // Whatever the back-off: what asks has one of its own, and a connect that fails ends this. Once: a server may
    // greet each connection, allow no stream on it, and end it.
    if (std::exchange(health_dialed_, true))
      health_->Stop({Kind::kNoConnection, 0, "its connections end before they take a stream"});
    else
      Dial();
  } else if (health_->connection() != nullptr && health_->connection()->usable() && !waiters_.empty() &&
             !connecting()) {
    health_->Stop({Kind::kGaveWay, 0, "a call waited for its place"});
  }
}

// A connect has failed. Where there are other connections it waits for room on one of them.
void EndpointPool::FailHealth(const std::string& error, bool refused) {
  if (health_ != nullptr && health_->waiting() && UsableConnections() == 0)
    health_->Stop({refused ? Kind::kRefused : Kind::kNoConnection, 0, error});
}

// It goes on elsewhere: `connection` takes no new streams and ends when its streams have.
void EndpointPool::MoveHealth(const http2::Connection& connection) {
  if (health_ == nullptr || health_->connection() != &connection) return;
  if (connection.why().empty()) return health_->Leave();
  health_->Stop({Kind::kMoved, 0, "its connection takes no new streams"});  // it has failed: no answer comes
}

// A connection with nothing but the Watch is closed as any other that is idle, if the endpoint has another one that the
// Watch can go to. The last one stays: it would have to be made anew at once.
bool EndpointPool::OnIdle(http2::Connection& connection) {
  const uint32_t w = context_.worker.index();
  if (UsableConnections() < 2 && endpoint_->ConnectedWorker(w + 1) == w) return false;
  if (health_ != nullptr && health_->connection() == &connection && health_->AwaitsAnswer()) return false;
  MoveHealth(connection);
  return true;
}

void PoolSet::AskHealth(const std::shared_ptr<Endpoint>& endpoint, const std::shared_ptr<const ClusterOptions>& options,
                        const std::shared_ptr<Feedback>& feedback, std::shared_ptr<HealthReport> report, bool watch) {
  // A pool that is made for a removed endpoint would never be drained.
  if (closed_ || endpoint->removed())
    return report->Ended({Kind::kMoved, 0, "the endpoint has left the list, or the proxy stops"});
  Get(endpoint, options, feedback)->AskHealth(std::move(report), watch);
}

void PoolSet::StopHealth(Endpoint& endpoint, const HealthReport* report) {
  if (EndpointPool* pool = endpoint.pool(context_.worker.index())) pool->StopHealth(report);
}

}  // namespace sluice::upstream

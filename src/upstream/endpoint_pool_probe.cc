// Connections that no call waits for: those that the judge of health asks for, and those in place of a lost one.
#include <algorithm>
#include <utility>

#include "upstream/endpoint_pool.h"

namespace sluice::upstream {

void EndpointPool::Probe(std::shared_ptr<ProbeResult> result) {
  TellProbe("another probe took its place");
  if (closing_ || draining_) return result->Set("the endpoint has left the list, or the proxy stops", false);
  probe_ = std::move(result);
  if (!connecting()) Dial();
}

// Whatever waits for the connect has its answer.
void EndpointPool::ConnectFailed(const std::string& error, bool refused) {
  endpoint_->connect_error().Note(error, context_.worker.now());
  TellProbe(error, refused);
  FailHealth(error, refused);
}

void EndpointPool::TellProbe(std::string error, bool refused) {
  if (auto result = std::exchange(probe_, nullptr)) result->Set(std::move(error), refused);
}

void EndpointPool::EndBackoff() {
  failures_in_row_ = 0;
  retry_at_ = {};
  broken_until_ = {};
  UpdateLink();
  DialIfNeeded();
}

void EndpointPool::Renew() {
  if (closing_ || draining_) return;
  std::vector<http2::Connection*> old;
  for (const auto& connection : connections_) {
    if (connection.get() != greeting_ && connection->usable()) old.push_back(connection.get());
  }
  if (old.empty()) return;
  retires_ = false;
  for (http2::Connection* connection : old) connection->Drain();
  // Behind that, because the place of the Watch would go to a call that waits.
  if (health_ != nullptr && std::find(old.begin(), old.end(), health_->connection()) != old.end())
    health_->Stop({HealthEnd::Kind::kMoved, 0, "the endpoint does not answer"});
  ReplaceLost();
}

// For calls that went elsewhere because there is no connection.
void EndpointPool::Reconnect() {
  if (closing_ || draining_ || connecting() || context_.worker.now() < retry_at_) return;
  if (UsableConnections() < options_->connections_max) Dial();
}

// Where the last connection that could take calls has ended: until there is another one, calls pass the endpoint over.
void EndpointPool::NoteLoss() {
  if (!retires_ && UsableConnections() == 0) able_until_ = {};
}

// One of its connections takes no more streams: what waits needs another one.
void EndpointPool::ReplaceLost() {
  NoteLoss();
  UpdateLink();
  if (closing_ || draining_) return;
  DialIfNeeded();
  if (health_ != nullptr) TendHealth();
}

void PoolSet::Probe(const std::shared_ptr<Endpoint>& endpoint, const std::shared_ptr<const ClusterOptions>& options,
                    const std::shared_ptr<Feedback>& feedback, std::shared_ptr<ProbeResult> result) {
  // A pool that is made for a removed endpoint would never be drained.
  if (closed_ || endpoint->removed()) return result->Set("the endpoint has left the list, or the proxy stops", false);
  Get(endpoint, options, feedback)->Probe(std::move(result));
}

void PoolSet::Renew(Endpoint& endpoint) {
  if (EndpointPool* pool = endpoint.pool(context_.worker.index())) pool->Renew();
}

void PoolSet::EndBackoff(Endpoint& endpoint) {
  if (EndpointPool* pool = endpoint.pool(context_.worker.index())) pool->EndBackoff();
}

}  // namespace sluice::upstream

// EndpointPool: one worker's connections to one endpoint: opened on demand, kept, reopened with jittered back-off,
// another one when the peer's MAX_CONCURRENT_STREAMS is reached; calls that find no room wait, FIFO and bounded.
//
// A connection: dialed (dialer_) -> there, its server's SETTINGS awaited (greeting_) -> with room for calls. The first
// two are one attempt, within connect_timeout; it fails as a whole, into back-off, and the calls that waited go to
// other endpoints.
//
// Life: kActive -> kDraining (removed from the list: no new calls, those in flight go on until drain_timeout) -> gone:
// it asks its owner, PoolSet, to destroy it. One worker only; not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/intrusive_list.h"
#include "http2/connection.h"
#include "upstream/endpoint.h"

namespace sluice::upstream {

class PoolSet;

class EndpointPool final : private http2::ConnectionEvents, private runtime::Timer {
 public:
  // A call that waits for room. Told once; Cancel or the destructor leaves the queue from any place in it.
  class Waiter : public base::ListNode<Waiter> {
   public:
    // `connection` has room: open a stream on it now, inside the call, because the next waiter is served after it.
    virtual void OnConnection(http2::Connection& connection) = 0;
    virtual void OnNoConnection(const base::Error& error) = 0;
    void CancelWait() {
      if (linked()) --pool_->waiting_;
      Unlink();
    }

   protected:
    ~Waiter() { CancelWait(); }

   private:
    friend class EndpointPool;
    EndpointPool* pool_ = nullptr;
  };

  // Connections in a row that end with GOAWAY before their first call, and are followed by the next attempt at once.
  static constexpr uint32_t kGoneAwayMax = 3;

  EndpointPool(PoolSet& owner, std::shared_ptr<Endpoint> endpoint, http2::ConnectionContext& context);
  ~EndpointPool();

  // May a call be sent here: active, and not in back-off without a connection.
  bool Usable() const {
    return !draining_ && !closing_ && (context_.worker.now() >= retry_at_ || attempting() || UsableConnections() > 0);
  }
  // A connection with room for a stream, or null: then Wait. Null also while others wait, so nobody barges.
  http2::Connection* Ready();
  // Queues; opens a connection where that can help. False: pending_calls_max is reached.
  bool Wait(Waiter& waiter);

  // Bracket an attempt. The pool stays alive from BeginCall to EndCall.
  void BeginCall();
  void EndCall();
  uint32_t in_flight() const { return in_flight_; }

  // The endpoint has left the list. Waiting calls get kDraining and look elsewhere.
  void StartDrain();
  // Closes everything now; for the worker's shutdown.
  void CloseNow();

  Endpoint& endpoint() const { return *endpoint_; }

 private:
  friend class PoolSet;

  http2::StreamEvents* OnRequest(http2::Connection&, http2::Stream&, http2::HeaderList, bool) override {
    return nullptr;
  }
  void OnCapacity(http2::Connection& connection) override;
  void OnGoaway(http2::Connection& connection) override;
  void OnTimeout(http2::Connection& connection, http2::Timeout which, size_t streams) override;
  void OnClosed(http2::Connection& connection, std::string_view why) override;
  void OnTimer(base::TimePoint now) override;

  void DialIfNeeded();
  void OnDialed(base::Result<std::unique_ptr<net::Stream>> result);
  void OnGreeted();
  void OnNoGreeting();
  void GreetingFailed(base::Error error);
  void NoteBroken(const http2::Session& session);
  void Forget(http2::Connection& connection);
  // The next attempt may not begin yet.
  bool attempting() const { return dialer_ != nullptr || greeting_ != nullptr; }
  void ServeWaiters();
  void FailWaiters(const base::Error& error);
  void BackOff();
  http2::Connection* FindRoom() const;
  size_t UsableConnections() const;  // those that may take streams, now or later
  void UpdateLink();
  void FinishDrainIfIdle();

  PoolSet& owner_;
  const std::shared_ptr<Endpoint> endpoint_;
  // Of the newest list seen here: new connections are made by them, those there are stay as they are.
  std::shared_ptr<const ClusterOptions> options_;
  http2::ConnectionContext& context_;
  std::vector<std::unique_ptr<http2::Connection>> connections_;
  std::unique_ptr<net::Attempt> dialer_;
  // The newest connection, until its server's SETTINGS have come: it is there, but not proved to be alive. Gets no
  // calls.
  http2::Connection* greeting_ = nullptr;
  base::TimePoint attempt_ends_{};  // of the attempt under way: both must be done by then
  uint32_t gone_away_ = 0;          // in a row: connections whose server sent GOAWAY behind its SETTINGS
  base::IntrusiveList<Waiter, Waiter> waiters_;
  uint32_t waiting_ = 0;
  uint32_t in_flight_ = 0;
  uint32_t failures_in_row_ = 0;
  base::TimePoint retry_at_{};      // in back-off before this
  base::TimePoint broken_until_{};  // before this another connection that breaks HTTP/2 means back-off
  bool draining_ = false;
  bool closing_ = false;  // CloseNow was called
  bool serving_ = false;  // inside ServeWaiters
};

// The pools of one worker. Owner of EndpointPools; destroys the drained ones.
class PoolSet {
 public:
  explicit PoolSet(http2::ConnectionContext& context) : context_(context) {}
  ~PoolSet();

  // This worker's pool for the endpoint; made on first use. The caller has seen this turn that the endpoint is not
  // removed: should it be removed meanwhile, the message to drain the pool is still to come. `options`: of the list
  // that the caller goes by.
  EndpointPool* Get(const std::shared_ptr<Endpoint>& endpoint, const std::shared_ptr<const ClusterOptions>& options);
  // This worker's part of removing the endpoint.
  void Drain(Endpoint& endpoint);
  // Closes all connections and destroys all pools with no calls in flight. Calls get kConnectionLost.
  void CloseAll();
  size_t size() const { return pools_.size(); }

 private:
  friend class EndpointPool;
  // Later this turn, because the pool is on the stack now.
  void DestroyLater(EndpointPool& pool);

  http2::ConnectionContext& context_;
  std::vector<std::unique_ptr<EndpointPool>> pools_;
};

}  // namespace sluice::upstream

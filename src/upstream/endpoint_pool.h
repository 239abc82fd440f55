// EndpointPool: one worker's connections to one endpoint: opened on demand, kept, reopened with jittered back-off,
// another one when the peer's MAX_CONCURRENT_STREAMS is reached; calls that find no room wait, FIFO and bounded.
//
// A connection: dialed (dialer_) -> there, its server's SETTINGS awaited (greeting_) -> with room for calls. The first
// two are one connect, within connect_timeout; it fails as a whole, into back-off, and the calls that waited go to
// other endpoints.
//
// Life: kActive -> kDraining (removed from the list: no new calls, those in flight go on until drain_timeout) -> gone:
// it asks its owner, PoolSet, to destroy it. One worker only; not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "base/intrusive_list.h"
#include "http2/connection/connection.h"
#include "upstream/endpoint.h"
#include "upstream/endpoint_series.h"
#include "upstream/health/failing_keys.h"
#include "upstream/health/health_report.h"
#include "upstream/health/outcome_cell.h"
#include "upstream/health/probe_result.h"
#include "upstream/health_stream.h"
#include "upstream/lone_calls.h"
#include "upstream/pool_waiter.h"

namespace sluice::upstream {

class PoolSet;

class EndpointPool final : private http2::ConnectionEvents, private LoneCalls::Owner, private runtime::Timer {
 public:
  using Waiter = PoolWaiter;  // an attempt that waits for room

  // A first connection that takes longer than this is slow, and so is a stream that calls wait for on connections that
  // are there: further calls do not wait while another endpoint can take them.
  static constexpr base::Nanos kConnectGrace = std::chrono::milliseconds(100);
  // A server that ends a connection with so many resets lately, and names an error, may have ended it for them.
  static constexpr uint32_t kResetsMin = 50;
  // At least between two connections that are begun because of resets: callers may cancel calls at full speed.
  static constexpr base::Nanos kBetweenWorn = std::chrono::milliseconds(100);
  // Connections in a row that end with GOAWAY before their first call, and are followed by the next connect at once.
  static constexpr uint32_t kGoneAwayMax = 3;

  EndpointPool(PoolSet& owner, std::shared_ptr<Endpoint> endpoint, http2::ConnectionContext& context);
  ~EndpointPool();

  // The same as Usable, but false also where the call would wait for a connection in place of one that was lost, for a
  // first one that is slow, or for a stream where none has been given for kConnectGrace. Then a connection is begun, if
  // none is under way and the back-off is over: calls that have nowhere else to go may wait for it, and the others come
  // back when it is there.
  bool TakesCalls() {
    if (context_.worker.now() < able_until_) [[likely]]
      return Usable();
    return TakesCallsAgain();
  }
  // May a call be sent here: active, and not in back-off without a connection. It may have to wait for one.
  bool Usable() const {
    return !draining_ && !closing_ && (context_.worker.now() >= retry_at_ || connecting() || UsableConnections() > 0);
  }
  // A connection with room for a stream, or null: then Wait. Null also while others wait, so no call overtakes them.
  http2::Connection* Ready();
  // Queues; opens a connection where that can help. False: pending_calls_max is reached. It ends after pending_timeout
  // with kPendingTimeout, where it is for room on connections that are there.
  bool Wait(Waiter& waiter);
  // The same on a connection of its own, up to connect_timeout. False: there are too many such already.
  bool WaitAlone(Waiter& waiter);
  // Its connections have no calls, and their server allows none.
  bool AllowsNone() const;

  // Bracket an attempt of a call, an outcome of which kAnswered, kFailed and kAbandoned are one. The pool stays alive
  // from BeginCall to EndCall. `whole`: the client has ended the request, so that the endpoint owes an answer. Else
  // Owes follows when it has, or when the endpoint has answered before: what a client does not end says nothing against
  // it.
  void BeginCall(bool whole = true);
  void Owes() { cell_.Owes(); }
  // `status`: gRPC's code that the attempt ended with, below EndpointSeries::kStatuses. `cause`: what went wrong, where
  // that is the endpoint's own making; it counts against its health, as far as it is not the making of `key`, the
  // call's (FailingKeys).
  void EndCall(Outcome outcome, size_t status, Cause cause = Cause::kNone, uint64_t key = 0);
  // The client has taken back a call that has no response yet, after Owes: before EndCall.
  void Withdrawn() { cell_.Withdrawn(); }
  // Whether an endpoint that answers as usual would have answered in `time`: a deadline that is shorter is the call's
  // own. True where nothing is known yet.
  bool IsLate(base::Nanos time) const;
  // The response to an attempt has begun, `after` its request was sent.
  void Answered(base::Nanos after) {
    const size_t bucket = metrics::Histogram::BucketOf(static_cast<uint64_t>(after.count()));
    series_.Answered(bucket, after);
    if (judged_) [[likely]]
      cell_.Answered(bucket, context_.worker.now());
  }
  // Tries a new connection, whatever the back-off; it stays for calls if it works. One more than connections_max for
  // that. No call waits for it that would not wait in any case.
  void Probe(std::shared_ptr<ProbeResult> result);
  // The endpoint is known to work: connections may be tried at once.
  void EndBackoff();
  // The connections there are take no new calls; those in flight on them go on. For an endpoint that does not answer: a
  // connection from before a fault of the network may stay dead for many seconds after it, because TCP's back-off has
  // grown (RFC 6298 5.5), where a new one works at once.
  void Renew();
  // Begins a Watch, or a Check, on a connection that has room; where there is none at all, on a new one, whatever the
  // back-off. Takes the place of the one before. `report` is ended in any case.
  void AskHealth(std::shared_ptr<HealthReport> report, bool watch);
  // Ends the one with that report, if it is out yet.
  void StopHealth(const HealthReport* report);
  uint32_t in_flight() const { return in_flight_; }

  // The endpoint has left the list. Waiting calls get kDraining and look elsewhere.
  void StartDrain();
  // Closes everything now; for the worker's shutdown.
  void CloseNow();

  Endpoint& endpoint() const { return *endpoint_; }

 private:
  friend class PoolSet;

  http2::StreamEvents* OnRequest(http2::Connection&, http2::Stream&, http2::HeaderList&&, bool) override {
    return nullptr;
  }
  void OnCapacity(http2::Connection& connection) override;
  void OnGoaway(http2::Connection& connection) override;
  bool OnIdle(http2::Connection& connection) override;
  void OnTimeout(http2::Connection& connection, http2::Timeout which, size_t streams) override;
  void OnClosed(http2::Connection& connection, std::string_view why) override;
  void OnTimer(base::TimePoint now) override;

  std::unique_ptr<net::Attempt> DialLone(base::TimePoint deadline, net::Dialer::OnDone done) override;
  void OnLoneConnected(http2::Connection& connection) override;
  void OnLoneClosed(const http2::Session& session) override;
  void OnNoLone() override { FinishDrainIfIdle(); }

  void Report(Outcome outcome, uint64_t count = 1);
  void CountFailure(Cause cause, uint64_t key);
  void DialIfNeeded();
  void Reconnect();
  void Dial();
  void TellProbe(std::string error, bool refused = false);
  void ConnectFailed(const std::string& error, bool refused = false);
  void TendHealth();
  void FailHealth(const std::string& error, bool refused);
  void MoveHealth(const http2::Connection& connection);
  void OnDialed(base::Result<std::unique_ptr<net::Stream>> result);
  void OnGreeted();
  void OnNoGreeting();
  void GreetingFailed(base::Error error);
  void NoteBroken(const http2::Session& session);
  void Forget(http2::Connection& connection);
  // A connect is under way: no other begins.
  bool connecting() const { return dialer_ != nullptr || greeting_ != nullptr; }
  void ServeWaiters();
  void FailWaiters(const base::Error& error);
  void NoteStarved();
  bool TakesCallsAgain();
  void ArmPending(base::TimePoint when);
  void OnPending(base::TimePoint now);
  void BackOff();
  http2::Connection* FindRoom() const;
  http2::Connection* FindFresh() const;
  // New calls had better begin on another connection. Of one with too many resets this may be over by now.
  bool MayBeWorn(const http2::Session& session) const {
    return session.window_is_low() || session.recent_resets().count() >= endpoint_->resets_max();
  }
  bool HasManyResets(const http2::Session& session) const {
    return session.recent_resets().Count(context_.worker.now()) >= endpoint_->resets_max();
  }
  void DialBeside(const http2::Session& worn);
  void LeaveWorn(http2::Connection& connection);
  size_t UsableConnections() const;  // those that may take streams, now or later
  void UpdateLink();
  void NoteLoss();
  void ReplaceLost();
  void FinishDrainIfIdle();

  PoolSet& owner_;
  const std::shared_ptr<Endpoint> endpoint_;
  // Of the newest list seen here: new connections are made by them, those there are stay as they are.
  std::shared_ptr<const ClusterOptions> options_;
  std::shared_ptr<Feedback> feedback_;    // the balancer's; null: it goes by no outcomes
  OutcomeCell& cell_;                     // the endpoint's, of this worker
  EndpointSeries::Cell& series_;          // the same
  std::shared_ptr<ProbeResult> probe_;    // waits for the connect under way
  std::unique_ptr<HealthStream> health_;  // the last one asked for, which may have ended; null: none
  bool health_dialed_ = false;            // a connection was begun for it
  http2::ConnectionContext& context_;
  std::vector<std::unique_ptr<http2::Connection>> connections_;
  std::unique_ptr<LoneCalls> lone_;  // made on first use
  std::unique_ptr<net::Attempt> dialer_;
  // The newest connection, until its server's SETTINGS have come: it is there, but not proved to be alive. Gets no
  // calls.
  http2::Connection* greeting_ = nullptr;
  base::TimePoint connect_ends_{};  // of the connect under way: it and the SETTINGS must be done by then
  uint32_t gone_away_ = 0;          // in a row: connections whose server sent GOAWAY behind its SETTINGS
  base::IntrusiveList<Waiter, Waiter> waiters_;
  uint32_t waiting_ = 0;
  // Fires when the first waiter, or one that was the first, has waited for pending_timeout.
  struct Pending final : runtime::Timer {
    explicit Pending(EndpointPool& p) : pool(p) {}
    void OnTimer(base::TimePoint now) override {
      armed = false;
      pool.OnPending(now);
    }
    EndpointPool& pool;
    bool armed = false;
  };
  Pending pending_{*this};
  uint32_t in_flight_ = 0;
  uint32_t failures_in_row_ = 0;
  base::TimePoint retry_at_{};  // in back-off before this
  // From this on calls pass the endpoint over: kNever where it has a connection with room, or had none yet, or closed
  // it itself.
  base::TimePoint able_until_ = base::kNever;
  bool retires_ = false;            // what ends now ends by a bound of ours
  base::TimePoint worn_until_{};    // before this none is begun because of resets
  base::TimePoint broken_until_{};  // before this another connection that breaks HTTP/2 means back-off
  base::TimePoint lost_at_ = base::TimePoint::min();  // the turn in which a connection with calls was lost last
  FailingKeys::Evidence evidence_;                    // of the endpoint, on this worker
  bool judged_ = false;                               // the endpoint's health is
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
  // removed: should it be removed meanwhile, the message to drain the pool is still to come. `options`, `feedback`: of
  // the list that the caller goes by and of its balancer. The pool looks at `feedback` when it is made and when the
  // options are others, because lists with the same options have the same one.
  EndpointPool* Get(const std::shared_ptr<Endpoint>& endpoint, const std::shared_ptr<const ClusterOptions>& options,
                    const std::shared_ptr<Feedback>& feedback);
  // Tries a connection to the endpoint and says in `result` what came of it.
  void Probe(const std::shared_ptr<Endpoint>& endpoint, const std::shared_ptr<const ClusterOptions>& options,
             const std::shared_ptr<Feedback>& feedback, std::shared_ptr<ProbeResult> result);
  // As EndpointPool's, by this worker's pool for the endpoint.
  void AskHealth(const std::shared_ptr<Endpoint>& endpoint, const std::shared_ptr<const ClusterOptions>& options,
                 const std::shared_ptr<Feedback>& feedback, std::shared_ptr<HealthReport> report, bool watch);
  void StopHealth(Endpoint& endpoint, const HealthReport* report);
  // The endpoint is known to work: this worker's back-off ends.
  void EndBackoff(Endpoint& endpoint);
  // The endpoint does not answer: this worker leaves its connections to it.
  void Renew(Endpoint& endpoint);
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
  bool closed_ = false;  // CloseAll was called: no pool is made for a probe any more
};

}  // namespace sluice::upstream

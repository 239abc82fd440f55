// LoneCalls: calls of one worker to one endpoint that share their connections with no other call, because a connection
// may be lost for what they are. Each has a new connection, which ends with it.
//
//   waits -> dialed, its server's SETTINGS awaited -> carries its call -> over
//
// At most kLoneMax such calls a worker and endpoint, of which kDialsMax are dialed at a time. Owned by the endpoint's
// pool, whose thread it shares.
#pragma once

#include <memory>
#include <vector>

#include "http2/connection/connection.h"
#include "net/dialer.h"
#include "upstream/pool_waiter.h"

namespace sluice::upstream {

class LoneCalls {
 public:
  static constexpr size_t kLoneMax = 64;
  // A connection that is lost sends all of its calls here in one turn, and the endpoint may just be restarting.
  static constexpr size_t kDialsMax = 8;

  // What the pool does for them.
  class Owner {
   public:
    virtual std::unique_ptr<net::Attempt> DialLone(base::TimePoint deadline, net::Dialer::OnDone done) = 0;
    // A connection is there, with nothing on it yet.
    virtual void OnLoneConnected(http2::Connection& connection) = 0;
    // One has ended, or ends now.
    virtual void OnLoneClosed(const http2::Session& session) = 0;
    // The last one has been forgotten.
    virtual void OnNoLone() = 0;

   protected:
    ~Owner() = default;
  };

  LoneCalls(http2::ConnectionContext& context, Owner& owner);
  ~LoneCalls();
  LoneCalls(const LoneCalls&) = delete;
  LoneCalls& operator=(const LoneCalls&) = delete;

  // The waiter hears of its connection, or why there is none by `deadline`. False: kLoneMax is reached.
  bool Add(PoolWaiter& waiter, const http2::ConnectionOptions& options, base::TimePoint deadline);
  // Calls that wait hear `error`; the others go on.
  void Drain(const base::Error& error);
  // Calls under way are reset.
  void Close(std::string_view why);
  // All end now, from outside of their callbacks.
  void CloseNow(const base::Error& error);
  bool empty() const { return all_.empty(); }

 private:
  class One;
  void Forget(One& one);
  // Dials for those that wait, the oldest first.
  void DialNext();

  http2::ConnectionContext& context_;
  Owner& owner_;
  std::vector<std::unique_ptr<One>> all_;
};

}  // namespace sluice::upstream

#include "runtime/reactor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/version.hpp>

#include "base/check.h"

namespace sluice::runtime {
namespace {

// TurnReactor stands on how Boost 1.81 calls its reactor from its scheduler. With another version, read that again.
static_assert(BOOST_VERSION / 100 == 1081);

namespace asio = boost::asio;
using EpollReactor = asio::detail::epoll_reactor;

// Comes back from the scheduler's queue behind the handlers of one epoll_wait.
class TurnMarker final : public asio::detail::scheduler_operation {
 public:
  TurnMarker() : scheduler_operation(&OnComplete) {}
  bool reached = false;

 private:
  static void OnComplete(void* owner, scheduler_operation* self, const boost::system::error_code&, size_t) {
    if (owner == nullptr) return;  // the context is being destroyed
    static_cast<TurnMarker*>(self)->reached = true;
    // The scheduler subtracts one piece of outstanding work after each operation; this was none.
    static_cast<asio::detail::scheduler*>(owner)->compensating_work_started();
  }
};

class TurnReactor final : public EpollReactor {
 public:
  TurnReactor(asio::execution_context& context, const base::Clock& clock)
      : EpollReactor(context), clock_(clock) {}

  void BeginTurn(base::Nanos timeout, base::TimePoint& now) {
    timeout_us_ = static_cast<long>(std::chrono::ceil<std::chrono::microseconds>(timeout).count());
    now_ = &now;
    marker_.reached = false;
  }
  bool turn_over() const { return marker_.reached; }

  // `usec` is 0 if handlers wait already (completed at once when their operation was started), else -1.
  void run(long usec, asio::detail::op_queue<asio::detail::scheduler_operation>& ops) override {
    EpollReactor::run(usec == 0 ? 0 : timeout_us_, ops);
    *now_ = clock_.Now();
    ops.push(&marker_);
  }

 private:
  const base::Clock& clock_;
  long timeout_us_ = 0;
  base::TimePoint* now_ = nullptr;
  TurnMarker marker_;
};

// Installs ours where the scheduler looks for its reactor; the context owns it.
TurnReactor* Install(asio::io_context& io, const base::Clock& clock) {
  auto* reactor = new TurnReactor(io, clock);
  asio::add_service<EpollReactor>(io, reactor);
  return reactor;
}

}  // namespace

struct Reactor::Impl {
  Impl(const base::Clock& clock, int wake_fd)
      : io(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE),
        reactor(Install(io, clock)),
        work(io.get_executor()),
        // Only registers the descriptor: an event without an operation waiting for it still ends epoll_wait.
        wake_descriptor(io, wake_fd) {}
  ~Impl() { wake_descriptor.release(); }

  asio::io_context io;
  TurnReactor* reactor;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  asio::posix::stream_descriptor wake_descriptor;
};

Reactor::Reactor(const base::Clock& clock) : wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  SLUICE_CHECK(wake_fd_ >= 0);
  impl_ = std::make_unique<Impl>(clock, wake_fd_);
}

Reactor::~Reactor() {
  Close();
  ::close(wake_fd_);
}

void Reactor::Close() { impl_.reset(); }

asio::io_context& Reactor::io() { return impl_->io; }

size_t Reactor::Turn(base::Nanos timeout, base::TimePoint& now) {
  impl_->reactor->BeginTurn(std::min(timeout, kWaitMax), now);
  size_t run = 0;
  while (!impl_->reactor->turn_over()) run += impl_->io.run_one();
  return run - 1;  // the marker
}

void Reactor::Wake() {
  const uint64_t one = 1;
  // The counter cannot overflow in a process's life, so the write cannot fail but by a bug.
  SLUICE_CHECK(::write(wake_fd_, &one, sizeof one) == sizeof one);
}

}  // namespace sluice::runtime

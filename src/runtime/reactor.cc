#include "runtime/reactor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/version.hpp>
#include <cerrno>

#include "base/check.h"
#include "runtime/direct_call.h"

namespace sluice::runtime {
namespace {

// What follows stands on how Boost 1.81 calls its reactor from its scheduler. With another version, read that again.
static_assert(BOOST_VERSION / 100 == 1081);

namespace asio = boost::asio;
using EpollReactor = asio::detail::epoll_reactor;
using Scheduler = asio::detail::scheduler;
using OpQueue = asio::detail::op_queue<asio::detail::scheduler_operation>;

// Two members of Asio that it does not show: its epoll descriptor, to be watched by ours, and its scheduler's queue, to
// know that something was posted. An explicit instantiation may name private members ([temp.spec.general]/6).
int EpollReactor::*EpollFd();
OpQueue Scheduler::*Queue();
template <int EpollReactor::*kMember>
struct ShowEpollFd {
  friend int EpollReactor::*EpollFd() { return kMember; }
};
template <OpQueue Scheduler::*kMember>
struct ShowQueue {
  friend OpQueue Scheduler::*Queue() { return kMember; }
};
template struct ShowEpollFd<&EpollReactor::epoll_fd_>;
template struct ShowQueue<&Scheduler::op_queue_>;

// Comes back from the scheduler's queue behind the handlers of one pass.
class PassMarker final : public asio::detail::scheduler_operation {
 public:
  PassMarker() : scheduler_operation(&OnComplete) {}
  bool reached = false;

 private:
  static void OnComplete(void* owner, scheduler_operation* self, const boost::system::error_code&, size_t) {
    if (owner == nullptr) return;  // the context is being destroyed
    static_cast<PassMarker*>(self)->reached = true;
    // The scheduler subtracts one piece of outstanding work after each operation; this was none.
    static_cast<Scheduler*>(owner)->compensating_work_started();
  }
};

class PassReactor final : public EpollReactor {
 public:
  explicit PassReactor(asio::execution_context& context) : EpollReactor(context) {}

  void BeginPass() { marker_.reached = false; }
  bool pass_over() const { return marker_.reached; }
  int epoll_fd() { return this->*EpollFd(); }

  void run(long, OpQueue& ops) override {
    EpollReactor::run(0, ops);
    ops.push(&marker_);
  }

 private:
  PassMarker marker_;
};

// Installs ours where the scheduler looks for its reactor; the context owns it.
PassReactor* Install(asio::io_context& io) {
  auto* reactor = new PassReactor(io);
  asio::add_service<EpollReactor>(io, reactor);
  reactor->init_task();
  return reactor;
}

int Add(int epoll_fd, int fd, uint32_t events, void* who) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = who;
  return ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

}  // namespace

struct Reactor::Impl {
  Impl()
      : io(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE),
        reactor(Install(io)),
        scheduler(asio::use_service<Scheduler>(io)),
        work(io.get_executor()) {}

  // The queue always holds the scheduler's own entry for its reactor.
  bool posted() const { return asio::detail::op_queue_access::next((scheduler.*Queue()).front()) != nullptr; }
  size_t Pass() {
    reactor->BeginPass();
    size_t run = 0;
    while (!reactor->pass_over()) run += io.run_one();
    return run - 1;  // the marker
  }

  asio::io_context io;
  PassReactor* reactor;
  Scheduler& scheduler;
  asio::executor_work_guard<asio::io_context::executor_type> work;
};

Reactor::Reactor(const base::Clock& clock)
    : clock_(clock),
      epoll_fd_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      impl_(std::make_unique<Impl>()) {
  SLUICE_CHECK(epoll_fd_ >= 0 && wake_fd_ >= 0);
  SLUICE_CHECK(Add(epoll_fd_, wake_fd_, EPOLLIN | EPOLLET, nullptr) == 0);
  // Level-triggered: as long as Asio has events that it has not taken. They may be more than it takes in one pass.
  SLUICE_CHECK(Add(epoll_fd_, impl_->reactor->epoll_fd(), EPOLLIN, this) == 0);
}

Reactor::~Reactor() {
  Close();
  ::close(epoll_fd_);
  ::close(wake_fd_);
}

void Reactor::Close() { impl_.reset(); }

asio::io_context& Reactor::io() { return impl_->io; }

int Reactor::Watch(int fd, uint32_t events, FdWatch& watch) { return Add(epoll_fd_, fd, events | EPOLLET, &watch); }

void Reactor::Rewatch(int fd, uint32_t events, FdWatch& watch) {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.ptr = &watch;
  SLUICE_CHECK(::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0);
}

// Closing the descriptor would do for the kernel, but not while a child between fork and exec shares the socket: its
// events would go on, to an object that is gone.
void Reactor::Unwatch(int fd, FdWatch& watch) {
  epoll_event ignored{};
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, &ignored);
  watch.Unlink();
  for (int i = event_; i < event_count_; ++i) {
    if (events_[static_cast<size_t>(i)].data.ptr == &watch) events_[static_cast<size_t>(i)].data.ptr = nullptr;
  }
}

bool Reactor::HasWork() const { return !to_tell_.empty() || (impl_ != nullptr && impl_->posted()); }

size_t Reactor::Turn(base::Nanos timeout, base::TimePoint& now) {
  bool pass = impl_->posted();
  // Only those who asked before this turn.
  base::IntrusiveList<FdWatch, FdWatch> told;
  told.Splice(to_tell_);
  if (pass || !told.empty()) timeout = base::Nanos(0);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::min(timeout, kWaitMax));
  event_count_ = EpollWait(epoll_fd_, events_.data(), kEventsMax, static_cast<int>(ms.count()));
  now = clock_.Now();
  size_t run = 0;
  for (event_ = 0; event_ < event_count_;) {
    const epoll_event& event = events_[static_cast<size_t>(event_++)];
    void* who = event.data.ptr;
    if (who == nullptr) continue;  // the eventfd, or unwatched since
    if (who == this) {
      pass = true;
      continue;
    }
    ++run;
    static_cast<FdWatch*>(who)->OnEdge(event.events);
  }
  event_ = event_count_ = 0;
  while (FdWatch* watch = told.PopFront()) {
    ++run;
    watch->OnTold();
  }
  if (pass) run += impl_->Pass();
  return run;
}

void Reactor::Wake() {
  const uint64_t one = 1;
  // The counter cannot overflow in a process's life, so the write cannot fail but by a bug.
  SLUICE_CHECK(::write(wake_fd_, &one, sizeof one) == sizeof one);
}

}  // namespace sluice::runtime

#include "hostile/loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace sluice::hostile {

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
Loop::~Loop() { ::close(epoll_); }

void Loop::Watch(int fd, uint32_t events, OnEvents handler) {
  handlers_[fd] = std::make_shared<OnEvents>(std::move(handler));
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void Loop::Change(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Loop::Forget(int fd) {
  handlers_.erase(fd);
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

uint64_t Loop::After(double ms, std::function<void()> action) {
  timers_.emplace(Now() + ms, Timer{next_timer_, std::move(action)});
  return next_timer_++;
}

void Loop::Cancel(uint64_t timer) {
  const auto found =
      std::find_if(timers_.begin(), timers_.end(), [timer](const auto& entry) { return entry.second.number == timer; });
  if (found != timers_.end()) timers_.erase(found);
}

bool Loop::Run(double ms, const std::function<bool()>& done) {
  const double end = Now() + ms;
  for (;;) {
    if (done && done()) return true;
    const double left = end - Now();
    if (left <= 0) return false;
    Turn(left);
  }
}

void Loop::Turn(double ms) {
  if (!timers_.empty()) ms = std::min(ms, timers_.begin()->first - Now());
  epoll_event events[64];
  const int wait = ms <= 0 ? 0 : static_cast<int>(std::ceil(ms));
  const double before = Now();
  const int count = ::epoll_wait(epoll_, events, 64, wait);
  waited_ += Now() - before;
  for (int i = 0; i < count; ++i) {
    const auto found = handlers_.find(events[i].data.fd);
    if (found == handlers_.end()) continue;  // forgotten by a handler of this turn
    const std::shared_ptr<OnEvents> handler = found->second;
    (*handler)(events[i].events);
  }
  const double now = Now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto action = std::move(timers_.begin()->second.action);
    timers_.erase(timers_.begin());
    action();
  }
}

double Loop::Now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace sluice::hostile

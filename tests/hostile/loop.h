// Loop: one thread's epoll and timers. Everything in the harness's own process runs on it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace sluice::hostile {

class Loop {
 public:
  using OnEvents = std::function<void(uint32_t)>;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Calls `handler` with epoll's events until Forget. Handlers may forget themselves and others.
  void Watch(int fd, uint32_t events, OnEvents handler);
  void Change(int fd, uint32_t events);
  void Forget(int fd);

  // Runs `action` once, `ms` from now. The returned number cancels it.
  uint64_t After(double ms, std::function<void()> action);
  void Cancel(uint64_t timer);

  // Handles events until `done` or for `ms`. True: `done` said so.
  bool Run(double ms, const std::function<bool()>& done = nullptr);

  // Milliseconds of the monotonic clock.
  static double Now();
  // Milliseconds that the loop has waited for events so far. What the clock says beside is the harness's own work.
  double Waited() const { return waited_; }

 private:
  struct Timer {
    uint64_t number;
    std::function<void()> action;
  };
  void Turn(double ms);

  const int epoll_;
  std::map<int, std::shared_ptr<OnEvents>> handlers_;
  std::multimap<double, Timer> timers_;
  uint64_t next_timer_ = 1;
  double waited_ = 0;
};

}  // namespace sluice::hostile

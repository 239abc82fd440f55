#include "admin/control_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

namespace sluice::admin {

ControlLoop::ControlLoop() : context_(std::make_unique<boost::asio::io_context>(1)) {}
ControlLoop::~ControlLoop() { Stop(); }

void ControlLoop::Start() {
  thread_ = std::thread([this] {
    const auto work = boost::asio::make_work_guard(*context_);
    context_->run();
  });
}

void ControlLoop::Stop() {
  context_->stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace sluice::admin

#include "admin/health_reporter.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>

namespace sluice::admin {

struct HealthReporter::Impl {
  Impl(std::chrono::milliseconds period, std::function<bool()> ask, std::function<void(bool)> tell)
      : period(period), ask(std::move(ask)), tell(std::move(tell)) {}

  void Arm() {
    timer.expires_after(period);
    timer.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      if (const bool now = ask(); now != last) tell(last = now);
      Arm();
    });
  }

  const std::chrono::milliseconds period;
  const std::function<bool()> ask;
  const std::function<void(bool)> tell;
  boost::asio::io_context context{1};
  boost::asio::steady_timer timer{context};
  bool last = false;  // the thread's, after the constructor
  std::thread thread;
};

HealthReporter::HealthReporter(std::chrono::milliseconds period, std::function<bool()> ask,
                               std::function<void(bool)> tell)
    : impl_(std::make_unique<Impl>(period, std::move(ask), std::move(tell))) {
  impl_->tell(impl_->last = impl_->ask());
  impl_->Arm();
  impl_->thread = std::thread([impl = impl_.get()] { impl->context.run(); });
}

HealthReporter::~HealthReporter() {
  impl_->context.stop();
  impl_->thread.join();
}

}  // namespace sluice::admin

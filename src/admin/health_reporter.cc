#include "admin/health_reporter.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace sluice::admin {

struct HealthReporter::Impl {
  Impl(boost::asio::io_context& context, std::chrono::milliseconds period, std::function<bool()> ask,
       std::function<void(bool)> tell)
      : period(period), ask(std::move(ask)), tell(std::move(tell)), timer(context) {}

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
  boost::asio::steady_timer timer;
  bool last = false;
};

HealthReporter::HealthReporter(boost::asio::io_context& context, std::chrono::milliseconds period,
                               std::function<bool()> ask, std::function<void(bool)> tell)
    : impl_(std::make_unique<Impl>(context, period, std::move(ask), std::move(tell))) {
  impl_->tell(impl_->last = impl_->ask());
  impl_->Arm();
}

HealthReporter::~HealthReporter() = default;

}  // namespace sluice::admin

#include "net/dns/dns_lookup.h"

#include <sys/socket.h>

#include <optional>
#include <utility>

#include "net/dns/dns_channel.h"
#include "runtime/runtime.h"
#include "runtime/timer_wheel.h"

namespace sluice::net {

using base::ErrorKind;
using base::MakeError;

namespace {

// What a helper thread has found.
struct Looked {
  std::vector<std::string> hosts;
  std::unique_ptr<DnsSystem> system;
  base::Error error;
};

Looked Look(const std::string& host, const DnsSettings& settings) {
  Looked looked{DnsSystem::InHosts(host), nullptr, {}};
  if (!looked.hosts.empty()) return looked;
  auto system = DnsSystem::Read(settings);
  if (system.ok())
    looked.system = std::move(*system);
  else
    looked.error = MakeError(ErrorKind::kConnectFailed, system.error().detail);
  return looked;
}

}  // namespace

// Shared with messages and helper threads' answers, which may arrive after the DnsLookup is gone.
struct DnsLookup::Impl final : public std::enable_shared_from_this<Impl>, private runtime::Timer {
  Impl(runtime::Worker& w, std::string name, OnDone callback)
      : worker(w), host(std::move(name)), on_done(std::move(callback)) {}

  void Start(DnsSettings settings) {
    auto looked = std::make_shared<Looked>();
    const bool queued = worker.runtime().Block(
        worker, [looked, name = host, settings = std::move(settings)] { *looked = Look(name, settings); },
        [looked, self = shared_from_this()] { self->Took(*looked); });
    if (!queued) Later(MakeError(ErrorKind::kConnectFailed, "too many names wait"));
  }
  void Took(Looked& looked) {
    if (done) return;
    if (!looked.hosts.empty()) return Finish(std::move(looked.hosts));
    if (looked.system == nullptr) return Finish(std::move(looked.error));
    channel = std::make_unique<DnsChannel>(std::move(looked.system));
    channel->Resolve(host, AF_INET6, [this](const auto& result) { Found(result, v6); });
    channel->Resolve(host, AF_INET, [this](const auto& result) { Found(result, v4); });
  }
  // A family whose question is never answered, as some servers have it with AAAA, does not keep the other back.
  void Found(const base::Result<std::vector<std::string>>& result, std::vector<std::string>& hosts) {
    --out;
    if (result.ok())
      hosts = *result;
    else if (!error || result.error().kind != ErrorKind::kNotFound)
      error = result.error();
    if (out > 0) {
      if (result.ok()) worker.timers().Arm(*this, worker.now() + kOtherFamilyWait);
      return;
    }
    Later(All());
  }
  void OnTimer(base::TimePoint) override { Finish(All()); }
  base::Result<std::vector<std::string>> All() const {
    std::vector<std::string> all = v6;
    all.insert(all.end(), v4.begin(), v4.end());
    if (all.empty()) return *error;
    return all;
  }
  // The channel must not end inside of its own call.
  void Later(base::Result<std::vector<std::string>> result) {
    worker.Post([self = shared_from_this(), result = std::move(result)] { self->Finish(result); });
  }
  void Finish(base::Result<std::vector<std::string>> result) {
    if (done) return;
    Cancel();
    const OnDone callback = std::move(on_done);  // it may destroy the DnsLookup
    callback(std::move(result));
  }
  void Cancel() {
    done = true;
    worker.timers().Disarm(*this);
    channel.reset();
  }

  runtime::Worker& worker;
  const std::string host;
  OnDone on_done;
  std::unique_ptr<DnsChannel> channel;
  int out = 2;  // families that have no answer yet
  std::vector<std::string> v6, v4;
  std::optional<base::Error> error;  // of a family; no answer rather than no address
  bool done = false;
};

DnsLookup::DnsLookup(runtime::Worker& worker, const std::string& host, OnDone on_done, DnsSettings settings)
    : impl_(std::make_shared<Impl>(worker, host, std::move(on_done))) {
  impl_->Start(std::move(settings));
}

DnsLookup::~DnsLookup() { impl_->Cancel(); }

}  // namespace sluice::net

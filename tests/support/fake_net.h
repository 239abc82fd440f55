// FakeNet: hosts by address that accept, refuse or do not answer, in memory; what net::Dial is to the real
// ones.
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/dialer.h"
#include "support/frame_peer.h"

namespace sluice::test {

struct FakeHost {
  enum class Mode { kAccept, kRefuse, kHang } mode = Mode::kAccept;
  bool speaks = true;  // false: accepts, and never sends a byte
  std::vector<std::pair<uint16_t, uint32_t>> settings;
  int dials = 0;
  std::vector<std::unique_ptr<FramePeer>> connections;

  FramePeer& last() { return *connections.back(); }
};

class FakeNet {
 public:
  explicit FakeNet(runtime::Worker& worker) : worker_(worker) {}

  FakeHost& host(const std::string& address) { return hosts_[address]; }
  net::DialFunction Dial() {
    return [this](runtime::Worker&, const net::Address& address, base::TimePoint deadline, net::Dialer::OnDone done) {
      return std::unique_ptr<net::Attempt>(new Attempt(*this, address.ToString(), deadline, std::move(done)));
    };
  }
  // Goes on with the attempts that hang at a host, as its mode says now.
  void Answer(const std::string& address) {
    for (Attempt* attempt : std::vector<Attempt*>(hanging_)) {
      if (attempt->address == address) attempt->Answer();
    }
  }
  bool Pump() {
    bool moved = false;
    for (auto& [address, host] : hosts_) {
      for (auto& connection : host.connections) moved |= connection->Pump();
    }
    return moved;
  }

 private:
  struct Attempt final : net::Attempt, runtime::Timer {
    Attempt(FakeNet& n, std::string a, base::TimePoint deadline, net::Dialer::OnDone d)
        : net(n), address(std::move(a)), done(std::move(d)) {
      FakeHost& host = net.host(address);
      ++host.dials;
      net.worker_.timers().Arm(*this, deadline);
      if (host.mode == FakeHost::Mode::kHang) {
        net.hanging_.push_back(this);
        return;
      }
      net.worker_.Post([this, alive = std::weak_ptr<bool>(alive)] {
        if (!alive.expired()) Answer();
      });
    }
    ~Attempt() override { std::erase(net.hanging_, this); }
    void Answer() {
      FakeHost& host = net.host(address);
      if (host.mode == FakeHost::Mode::kRefuse) {
        base::Error error = base::MakeError(base::ErrorKind::kConnectFailed, "refused");
        error.os_error = ECONNREFUSED;
        return Finish(std::move(error));
      }
      auto pair = net::MemoryStream::Make(net.worker_, "proxy", address);
      host.connections.push_back(std::make_unique<FramePeer>(FramePeer::Role::kServer, std::move(pair.far)));
      host.last().acknowledge = host.speaks;
      if (host.speaks) host.last().Send(h2::Settings(host.settings));
      Finish(std::unique_ptr<net::Stream>(std::move(pair.near)));
    }
    void OnTimer(base::TimePoint) override { Finish(base::MakeError(base::ErrorKind::kConnectTimeout, "no answer")); }
    void Finish(base::Result<std::unique_ptr<net::Stream>> result) {
      net.worker_.timers().Disarm(*this);
      auto callback = std::move(done);  // it destroys this
      callback(std::move(result));
    }
    FakeNet& net;
    const std::string address;
    net::Dialer::OnDone done;
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  };

  runtime::Worker& worker_;
  std::map<std::string, FakeHost> hosts_;
  std::vector<Attempt*> hanging_;
};

}  // namespace sluice::test

// ControlPlane: an xDS server that sends a resource which its client must refuse, and sends it again as soon as the
// client has refused it, as a snapshot cache does. It reports a client that answers as fast.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "hostile/frame_peer.h"

namespace sluice::hostile {

class ControlPlane {
 public:
  ControlPlane(Loop& loop, std::function<void(const std::string& violation)> report);
  ~ControlPlane();
  uint16_t port() const { return listener_.port(); }

 private:
  struct Connection;
  void Accepted(int fd);
  void Asked(Connection& connection, uint32_t stream);

  Loop& loop_;
  const std::function<void(const std::string&)> report_;
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
  double second_ = 0;  // when the current one began
  int in_second_ = 0;
  uint64_t nonce_ = 0;
  Listener listener_;
};

}  // namespace sluice::hostile

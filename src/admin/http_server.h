// HttpServer: the HTTP/1.1 port for people and monitoring: /metrics, /healthz, /readyz and a status page at /.
//
// It only reads. It has two ControlLoops of its own: on one the sockets, and what is answered at once, as probes are;
// on the other pages and metrics, one after the other. A slow client is only its own problem, because every connection
// has a deadline. The Backend must outlive it. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "admin/backend.h"
#include "net/listen_socket.h"

namespace sluice::admin {

struct HttpOptions {
  // Open at once; for one more the connection goes that has waited longest for its client, so that strangers that hold
  // connections and say nothing cannot keep a probe out.
  // More than are accepted in one turn (net::AcceptLoop), so that each is read before it may have to go.
  size_t connections_max = 256;
  // Pages and metrics that are asked for at once; for more: 503.
  size_t pages_max = 64;
  // Connections that the kernel queues: a probe should find a place there in a storm of them.
  size_t backlog = 1024;
  // Of a request's line and header; above it 431. A body is refused with 413.
  size_t header_bytes_max = 8 << 10;
  // From the first moment of a connection, or the end of the last response, until the next request is complete. One
  // deadline for the whole of it: a byte now and then buys no time.
  std::chrono::milliseconds request_timeout{10'000};
  // Until the client has taken the response.
  std::chrono::milliseconds write_timeout{30'000};
};

class HttpServer {
 public:
  // `socket`: one that listens there already; without: a new one. `address`: "ip:port"; port 0: any. kInvalidArgument,
  // kConflict (in use), kIo.
  static base::Result<std::unique_ptr<HttpServer>> Start(const std::string& address, Backend& backend,
                                                         HttpOptions options = {},
                                                         std::optional<net::ListenSocket> socket = std::nullopt);
  // Cuts what is open and ends the thread. Must not be called from a Backend function.
  ~HttpServer();

  uint16_t port() const;
  std::string address() const;  // "ip:port" with the real port
  // As AdminServer has them.
  int fd() const;
  void StopAccepting();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::admin

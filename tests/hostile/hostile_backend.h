// HostileBackend: a gRPC server, frame by frame, that answers a call as the program says that its x-script names, and
// as an honest echo where there is none. Programs are lists of operations, one a move ("answer K OP ..."):
//
//   await                      go on when the request has ended
//   wait MS
//   head FLAGS NAME=VALUE...   a header block; FLAGS: "end" (END_STREAM), "-", "index" (into the table);
//                              the value $id is the x-id of the request
//   data SIZE FLAGS            DATA of so many bytes
//   msg SIZE FLAGS             DATA with a gRPC message of so many bytes
//   frame TYPE FLAGS BYTES     any frame on this stream
//   raw BYTES                  past all framing
//   rst CODE | goaway LAST CODE | close | abort
//   relay                      sends the request to the proxy again, as a proxy that is configured in a loop
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hostile/frame_peer.h"

namespace sluice::hostile {

class HostileBackend {
 public:
  using Report = std::function<void(const std::string& violation)>;

  HostileBackend(Loop& loop, Report report);
  ~HostileBackend();

  uint16_t port() const { return listener_->port(); }
  // Where relayed calls go.
  void set_proxy_port(uint16_t port) { proxy_port_ = port; }

  // `op`: the move without "answer K".
  void Program(const std::string& name, Move op);
  const Script* program(const std::string& name) const;
  // To every connection that is open, and to those that come until Reset.
  void SendAll(const std::string& bytes, bool also_new = false);
  void CloseAll(bool abort);
  // Whether requests' bytes are credited, and connections accepted and read.
  void set_credits(bool on) { credits_ = on; }
  void set_first_settings(std::string bytes) { first_settings_ = std::move(bytes); }
  // Ends what a seed has begun: programs, settings. Connections that it has spoiled are closed.
  void Reset();

  size_t connections() const { return connections_.size(); }
  uint64_t calls() const { return calls_; }

 private:
  struct Stream;
  struct Connection;
  void Accepted(int fd);
  void Request(Connection& connection, uint32_t stream, const Fields& fields, bool ended);
  void Frame(Connection& connection, const h2::Frame& frame);
  void Step(const std::shared_ptr<Connection>& connection, uint32_t stream);
  // False: the program waits or the connection is gone.
  bool Do(Connection& connection, Stream& stream, const Move& op);
  void Echo(Connection& connection, Stream& stream);
  void Relay(const Stream& stream);
  void Drop(Connection& connection);

  Loop& loop_;
  const Report report_;
  std::map<std::string, Script> programs_;
  std::map<Connection*, std::shared_ptr<Connection>> connections_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<FramePeer> relay_;
  uint32_t relay_stream_ = 1;
  std::map<std::string, int> rounds_;  // of relayed calls, by x-id
  uint16_t proxy_port_ = 0;
  bool credits_ = true, spoiled_ = false;
  std::string first_settings_;
  uint64_t calls_ = 0;
};

// Whether gRPC lets a client take the answer of this program as OK: HEADERS of a 200 with gRPC's media type, DATA, and
// trailers that end the stream with one grpc-status 0; or all in one block that ends it.
bool MayBeOk(const Script& program);

}  // namespace sluice::hostile

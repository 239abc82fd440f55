// Player: plays a script: it is the hostile caller, and tells the hostile backend what to do. It reads the answers that
// it gets as an honest client would, and reports those that no client may get. The verbs (C names a connection, WHICH
// the calls of it: a number from 0 on, "last", "all", "half"):
//
//   open C LISTENER [ID=VALUE...]        connects, with preface and SETTINGS; "bare": with nothing
//   call C FLAGS NAME=VALUE...           HEADERS; FLAGS of "end" or "open", "index", "must": it has to end in some
//   seconds calls C N FLAGS NAME=VALUE...        the same N times data C WHICH SIZE FLAGS              DATA; msg: with
//   gRPC's prefix trailers C WHICH NAME=VALUE...       HEADERS with END_STREAM rst C WHICH CODE | window C WHICH N |
//   ping C N | settings C N ID=VALUE... | goaway C CODE frame C TYPE FLAGS STREAM N BYTES    any frame N times; STREAM:
//   a number, "last", "next" bytes C BYTES                        past all framing (with TLS: in it) ; tcp C BYTES:
//   past TLS as well flood C MEGABYTES                    DATA on the last call, for as long as the connection's window
//   is credited keyupdate C N | stopread C | read C | nowindow C | shut C | close C | abort C wait MS answer K OP... |
//   bsettings ID=VALUE... | bframe TYPE FLAGS STREAM N BYTES | bclose | babort | bnocredit
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hostile/frame_peer.h"
#include "hostile/hostile_backend.h"
#include "hostile/tree.h"

namespace sluice::hostile {

class Player {
 public:
  using Report = std::function<void(const std::string& violation)>;

  Player(Loop& loop, HostileBackend& backend, Report report);
  ~Player();

  // Turns the loop while it waits. When it returns all connections of the script are closed, but those with calls that
  // have to end: these are watched for kPatienceMs.
  void Play(const Script& script, Tree& tree);
  // Whether calls of former scripts are still watched.
  bool watching() const { return !kept_.empty(); }
  void Forget();  // the process tree goes
  // How many connections the last script had at once.
  size_t most_connections() const { return most_connections_; }

  static constexpr double kPatienceMs = 8000;

 private:
  struct Call;
  struct Connection;
  void Do(const Move& move, Tree& tree);
  void Open(const Move& move, Tree& tree);
  void SendCall(Connection& connection, const std::string& flags, const Fields& fields);
  std::vector<Call*> Which(Connection& connection, const std::string& which);
  void Block(Connection& connection, uint32_t stream, const Fields& fields, bool ended);
  void Frame(Connection& connection, const h2::Frame& frame);
  void Flood(Connection& connection);
  void Judge(Connection& connection, Call& call);
  void Watch(std::shared_ptr<Connection> connection);

  Loop& loop_;
  HostileBackend& backend_;
  const Report report_;
  std::map<std::string, std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> kept_;
  std::map<std::string, std::string> owners_;  // of keys, as bytes: the backend that answered
  size_t most_connections_ = 0;
};

}  // namespace sluice::hostile

// Client: one client connection with the calls that the script gives it.
#pragma once

#include <deque>
#include <map>

#include "chaos/call.h"
#include "chaos/peer.h"

namespace sluice::chaos {

class Client final : public Peer {
 public:
  // `bad`: also does what the protocol forbids.
  Client(Stage& stage, std::string name, std::unique_ptr<net::MemoryStream> wire, const Manners& manners, Dice dice,
         bool bad)
      : Peer(stage, Role::kClient, std::move(name), std::move(wire), manners, dice), bad_(bad) {}

  bool bad() const { return bad_; }
  // Sends it when there is room for another stream; never, if the connection takes no more.
  void Begin(Call& call);
  void Cancel(Call& call, uint32_t code);
  // The script is over: what was left open is ended.
  void Finish();
  // From here on the proxy may close the connection and its calls.
  void Excuse() { excused_ = true; }
  bool told_to_go() const { return goaway_.has_value(); }

 private:
  void OnHeaders(uint32_t id, const h2::Fields& fields, bool end) override;
  void OnData(uint32_t id, std::string_view bytes, bool end) override;
  void OnReset(uint32_t id, uint32_t code) override;
  void OnGoaway(uint32_t last, uint32_t code) override;
  void OnSettings() override;
  void OnGone() override;
  std::string RoleWrongFrame() override;

  void SendNext();
  void Send(Call& call);
  void SendBody(Call& call);
  void End(Call& call);
  Call* Find(uint32_t id, const char* what);
  void CloseWhenDone();

  const bool bad_;
  bool excused_ = false;
  bool ready_ = false;  // SETTINGS have come
  uint32_t next_ = 1;
  size_t open_ = 0;
  std::optional<uint32_t> goaway_;  // the last stream that it lets through
  std::deque<Call*> waiting_;
  std::map<uint32_t, Call*> calls_;  // by stream
};

}  // namespace sluice::chaos

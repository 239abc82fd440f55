// Backend: one address that is dialed: how it takes connections, and the connections it has.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "chaos/call.h"
#include "chaos/peer.h"
#include "chaos/plan.h"

namespace sluice::chaos {

// A connection of the proxy's to a backend.
class BackendConnection final : public Peer {
 public:
  BackendConnection(Stage& stage, std::string name, std::unique_ptr<net::MemoryStream> wire, const Manners& manners,
                    Dice dice, const Plan& plan);

  // The script is over: what was held is answered.
  void Finish();
  // GOAWAY in two steps, and the end when the last answer is out.
  void Leave();
  // GOAWAY that lets through some streams or none.
  void LeaveBadly();
  uint32_t begun() const { return begun_; }

 private:
  enum class Asks : uint8_t { kCall, kWatch, kCheck };
  struct Request {
    Asks asks = Asks::kCall;
    bool serving = true;  // what its health service said last
    uint32_t call = 0;
    bool executed = false;
    Method method = Method::kUnary;
    std::string body;
    size_t echoed = 0;
    bool ended = false;     // the request
    bool answered = false;  // in whole, or never will be
    bool begun = false;     // response headers are out
    bool held = false;
    int mood = 0;  // of a bad backend: what it does to the call
  };

  void OnHeaders(uint32_t id, const h2::Fields& fields, bool end) override;
  void OnData(uint32_t id, std::string_view bytes, bool end) override;
  void OnReset(uint32_t id, uint32_t code) override;
  void OnGoaway(uint32_t, uint32_t) override {}
  void OnGone() override {}
  std::string RoleWrongFrame() override;

  void OnRequestEnd(uint32_t id, Request& request);
  void Execute(Request& request);
  void BeginResponse(uint32_t id, Request& request);
  void Echo(uint32_t id, Request& request);
  void Respond(uint32_t id);
  bool Misbehave(uint32_t id, Request& request);
  void AnswerBadly(uint32_t id, Request& request);
  void SayHealth(uint32_t id, bool serving);
  void Done(Request& request);
  void CloseWhenDone();

  const Plan& plan_;
  const bool bad_;
  std::map<uint32_t, Request> requests_;
  uint32_t begun_ = 0;
  bool leaving_ = false, close_planned_ = false;
  std::optional<uint32_t> last_;  // GOAWAY's: what is above is not answered
};

}  // namespace sluice::chaos

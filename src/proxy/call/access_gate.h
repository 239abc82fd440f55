// AccessGate: which clients may call what, by the rules of a route (docs/access.md).
//
//   rules in order --> the first whose conditions all fit --> allow: the call goes on
//                                                         \-> deny: it ends with the rule's status
//                  --> none fits --> it ends with PERMISSION_DENIED
//
// A rule that allows wants every value of a metadata name to fit: a client that sends two, of which its endpoint reads
// the other one, passes no rule by. For a rule that denies one of them is enough (proxy/metadata_match.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/call/gate.h"
#include "proxy/options.h"

namespace sluice::proxy {

class AccessGate final : public Gate {
 public:
  // `route`: its name, for messages. `rules`: at least one.
  AccessGate(std::string route, std::vector<AccessRule> rules);

  std::string_view name() const override { return name_; }
  // What is stored belongs to those that may call.
  bool AllowsFastPath() const override { return false; }
  GateVerdict Ask(const GateRequest& request, std::unique_ptr<GateCheck>& check) const override;

  // Whether a gate of these would be this one.
  bool Is(std::string_view route, const std::vector<AccessRule>& rules) const {
    return route_ == route && rules_ == rules;
  }

 private:
  const std::string route_, name_;
  const std::vector<AccessRule> rules_;
};

// The gates of a route; null: it has none. Of `former`, the gates that it had, each that would be the same stays: a
// call that waits meanwhile is asked by gates that it has not met.
std::shared_ptr<const GateList> GatesOf(const RouteOptions& route, const GateList* former);

}  // namespace sluice::proxy

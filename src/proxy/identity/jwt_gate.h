// JwtGate: a route's calls need a JWT of its provider, or may come without one; what it claims goes on as metadata that
// only the proxy may set.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/call/gate.h"
#include "proxy/identity/jwt_provider.h"

namespace sluice::proxy {

class JwtGate final : public Gate {
 public:
  JwtGate(std::shared_ptr<const JwtProvider> provider, bool required);

  std::string_view name() const override { return name_; }
  // A stored answer to a call is for those that may make the call.
  bool AllowsFastPath() const override { return false; }
  // Removes each field that has a forwarded claim's name, whatever the verdict. A good token's claims are added in
  // their place, and without forward_token `authorization` is dropped. Refuses with kJwtMissing or kJwtInvalid; the
  // detail has nothing of the token. Never waits.
  GateVerdict Ask(const GateRequest& request, std::unique_ptr<GateCheck>& check) const override;

  const std::shared_ptr<const JwtProvider>& provider() const { return provider_; }
  bool required() const { return required_; }

 private:
  bool IsClaimField(std::string_view name) const;

  const std::shared_ptr<const JwtProvider> provider_;
  const bool required_;
  const std::string name_;
  uint64_t name_sizes_ = 0;  // bit N: a forwarded claim's name has N bytes, modulo 64
};

}  // namespace sluice::proxy

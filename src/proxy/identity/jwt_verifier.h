// VerifyJwt: whether a signed JWT (RFC 7519, RFC 7515) is one that a provider takes, and what it says of the call.
//
// What RFC 8725 advises: the algorithm is the provider's and the key's, not the token's alone; none and symmetric ones
// there are not; a member that stands twice is refused; keys that a token brings along (jwk, jku, x5u, x5c) are not
// looked at; issuer and audience are checked; of claims nothing is read before the signature is known to be good.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/identity/jwt_fault.h"
#include "proxy/identity/key_set.h"
#include "proxy/options.h"

namespace sluice::proxy {

inline constexpr size_t kClaimBytesMax = 1024;  // of a claim that is handed on

// Of a JWT that is good but for its time.
struct VerifiedJwt {
  struct Field {
    uint32_t claim;  // place in forward_claims
    std::string value;
  };
  // Seconds since 1970, with the leeway: from the first on, and until the second, which is not within.
  int64_t valid_from = INT64_MIN, valid_until = INT64_MIN;
  std::vector<Field> fields;

  // kNone, kExpired or kNotYetValid.
  JwtFault At(int64_t wall) const {
    if (wall >= valid_until) return JwtFault::kExpired;
    return wall < valid_from ? JwtFault::kNotYetValid : JwtFault::kNone;
  }
};

// Fills `out` where the result is kNone. `tried`: raised by how many keys the signature was checked with. `wall`:
// seconds since 1970.
JwtFault VerifyJwt(std::string_view token, const JwtProviderOptions& options, const KeySet& keys, int64_t wall,
                   VerifiedJwt* out, uint32_t* tried = nullptr);

}  // namespace sluice::proxy

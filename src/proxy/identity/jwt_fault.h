// JwtFault: why a JWT is not taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::proxy {

enum class JwtFault : uint8_t {
  kNone,
  kMissing,        // there is no authorization
  kRepeated,       // there is more than one
  kMalformed,      // it is no "Bearer TOKEN", or the token no signed JWT in the form that RFC 7515 3.1 gives it
  kTooLarge,       // above token_bytes_max
  kAlgorithm,      // `alg` is not one of the provider's, or not the key's
  kCritical,       // its header has `crit`: extensions that must be understood, of which there are none
  kUnknownKey,     // no key fits
  kSignature,      // no key made the signature
  kClaims,         // claims that are no JSON object, or one that is not of its kind
  kExpired,        // exp is over
  kNotYetValid,    // nbf or iat are to come
  kIssuer,         // iss is not the provider's
  kAudience,       // aud has none of the provider's
  kClaimsTooMany,  // the claims are above kJsonDepthMax or kJsonValuesMax
  kUnchecked,      // too many of the connection's tokens have failed (failed_checks.h)
};
inline constexpr size_t kJwtFaults = static_cast<size_t>(JwtFault::kUnchecked) + 1;

// The value of the label `result`; lower case, underscores.
std::string_view ToString(JwtFault fault);
// For a person: "the JWT has expired".
std::string_view TextOf(JwtFault fault);

}  // namespace sluice::proxy

// KeySet: the public keys of an issuer, from a JWK Set (RFC 7517), and what they say of a signature.
//
// Immutable. Thread safety: all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "proxy/identity/jwt_fault.h"
#include "proxy/options.h"

namespace sluice::proxy {

inline constexpr size_t kJwksBytesMax = 256 * 1024;
inline constexpr size_t kJwksKeysMax = 64;
// A signature without `kid` is tried with so many keys of its algorithm, the first ones.
inline constexpr size_t kJwksTriedMax = 4;
inline constexpr int kRsaBitsMin = 2048, kRsaBitsMax = 8192;

class KeySet {
 public:
  // kInvalidArgument: it is no JWK Set, or above a bound; the detail says what is wrong. A key that is of no use for
  // the three algorithms (symmetric, another curve, too short, for encryption, malformed) is skipped and counted.
  static base::Result<std::shared_ptr<const KeySet>> Parse(std::string_view jwks);
  ~KeySet();
  KeySet(const KeySet&) = delete;
  KeySet& operator=(const KeySet&) = delete;

  size_t size() const;     // keys that can be used
  size_t skipped() const;  // others

  // Keys that are not tried for a token without `kid`: beyond kJwksTriedMax of their algorithm.
  size_t untried() const;

  // Whether `signature` is one over `input` by a key of this set for exactly this algorithm: by those with `kid`, or,
  // without one, by any of the first kJwksTriedMax. `tried`: how many keys it was checked with. kNone: it is. Else
  // kUnknownKey, kAlgorithm (the key is for another one) or kSignature.
  JwtFault Verify(JwtProviderOptions::Algorithm algorithm, const std::optional<std::string>& kid,
                  std::string_view input, std::string_view signature, uint32_t* tried = nullptr) const;

 private:
  struct Impl;
  explicit KeySet(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::proxy

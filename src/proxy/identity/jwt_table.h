// JwtTable: JWTs of which a worker knows the result, so that a client's next call costs no signature. Only good ones:
// a stranger fills it with nothing.
//
// Sets of four entries, found by a seeded hash of the token's last bytes, which are its signature; a look-up compares
// all of the token. The entry used longest ago of its set gives way. Memory comes with what is put in.
//
// Thread safety: one worker's own; aligned, so that no line of it is another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/identity/jwt_verifier.h"

namespace sluice::proxy {

class alignas(64) JwtTable {
 public:
  // `max`: entries, rounded up to a multiple of 4.
  JwtTable(size_t max, uint64_t seed);

  // The result for this token by the keys of that generation; null: not known. Good until the next Put. Does not
  // allocate. Entries of another generation go.
  const VerifiedJwt* Find(std::string_view token, uint64_t generation) {
    if (generation != generation_ || entries_.empty()) [[unlikely]]
      return Renew(generation);
    const uint64_t hash = HashOf(token);
    Entry* const set = SetOf(hash);
    for (size_t i = 0; i < kWays; ++i) {
      if (set[i].hash != hash || set[i].token != token) continue;
      set[i].used = ++uses_;
      return &set[i].jwt;
    }
    return nullptr;
  }
  const VerifiedJwt* Put(std::string_view token, uint64_t generation, VerifiedJwt jwt);
  // Entries that are filled.
  size_t size() const;

 private:
  static constexpr size_t kWays = 4;
  struct Entry {
    uint64_t hash = 0;
    uint64_t used = 0;  // 0: never
    std::string token;
    VerifiedJwt jwt;
  };
  uint64_t HashOf(std::string_view token) const;
  Entry* SetOf(uint64_t hash) {
    return &entries_[static_cast<size_t>(static_cast<unsigned __int128>(hash) * sets_ >> 64) * kWays];
  }
  const VerifiedJwt* Renew(uint64_t generation);

  const size_t sets_;
  const uint64_t seed_;
  uint64_t generation_ = 0;
  uint64_t uses_ = 0;
  std::vector<Entry> entries_;  // empty until the first Put
};

}  // namespace sluice::proxy

// JwtProvider: an issuer's keys in force, what each worker knows of its tokens, and counts of both.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/registry.h"
#include "proxy/failed_checks.h"
#include "proxy/identity/jwt_table.h"
#include "proxy/identity/jwt_verifier.h"
#include "proxy/identity/key_set.h"

namespace sluice::proxy {

// Seconds since 1970, by the wall clock: tokens have dates. Any thread.
using WallClock = std::function<int64_t()>;

class JwtProvider {
 public:
  JwtProvider(JwtProviderOptions options, std::shared_ptr<const KeySet> keys, WallClock wall, uint32_t workers,
              metrics::Registry& registry);

  const JwtProviderOptions& options() const { return options_; }
  // These keys and no others from now on: what is known of tokens by the former ones is not used any more. Any thread.
  void PutKeys(std::shared_ptr<const KeySet> keys);
  std::shared_ptr<const KeySet> keys() const;

  // What becomes of the token in a call of that worker, whose thread this is. With kNone `jwt` is set, and good until
  // the worker's next Check. A token that is not known costs a signature's verification, some 30 to 200 us. Does not
  // suspend. `failed`: of the token's connection; charged with what is wrong and was checked. Without budget a token
  // that is not known is kUnchecked.
  JwtFault Check(std::string_view token, uint32_t worker, base::TimePoint now, FailedChecks& failed,
                 const VerifiedJwt** jwt) const;

  // Of calls that Check is not asked about: those that it counts itself are not to be counted here.
  enum class Unchecked : uint8_t { kAbsent, kMissing, kRepeated, kMalformed };
  void Count(Unchecked what, uint32_t worker) const;

 private:
  struct Keys {
    std::shared_ptr<const KeySet> set;
    uint64_t generation;
  };
  Keys Current() const;
  void CountFault(JwtFault fault, uint32_t worker) const;

  const JwtProviderOptions options_;
  const WallClock wall_;
  std::span<metrics::Counter> calls_;
  // By worker.
  const std::vector<std::unique_ptr<JwtTable>> tables_;
  // Of keys_. Read on each call; written after keys_, so that a call that reads it finds keys that are no older.
  std::atomic<uint64_t> generation_{1};
  mutable std::mutex mutex_;
  std::shared_ptr<const KeySet> keys_;
};

}  // namespace sluice::proxy

// ChangeGate: lets changes by RPC in one by one, and keeps them out while a process takes over from this one: what they
// changed here would be lost.
//
// Thread safety: all of it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"

namespace sluice::server {

class ChangeGate {
 public:
  // For as long as the result lives a change is under way. kBusy says why there may be none.
  base::Result<std::shared_ptr<const void>> Enter() {
    std::lock_guard lock(mutex_);
    if (!why_.empty()) return base::MakeError(base::ErrorKind::kBusy, why_);
    return std::shared_ptr<const void>(token_);
  }
  // No change enters from now on, for the reason `why`.
  void Close(std::string why) {
    std::lock_guard lock(mutex_);
    why_ = std::move(why);
  }
  void Open() { Close({}); }
  // Changes are under way.
  bool busy() const {
    std::lock_guard lock(mutex_);
    return token_.use_count() > 1;
  }

 private:
  mutable std::mutex mutex_;
  std::string why_;  // under mutex_; empty: it is open
  const std::shared_ptr<const int> token_ = std::make_shared<const int>(0);
};

}  // namespace sluice::server

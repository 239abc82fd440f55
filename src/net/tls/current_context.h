// CurrentTlsContext: where the TlsContext in force for one listener or cluster stands. When its files change another
// one is put in: new handshakes take that, connections keep theirs. Counts how handshakes end, and logs those that
// fail.
//
// Thread safety: all of it. A mutex, held for a copied pointer once a handshake.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log_limit.h"
#include "metrics/registry.h"
#include "net/tls/context.h"
#include "net/tls/handshake.h"

namespace sluice::net {

class CurrentTlsContext {
 public:
  // `side`: "listener" or "cluster", and its name: labels of the metrics.
  CurrentTlsContext(metrics::Registry& registry, std::string_view side, std::string_view name);

  // Null until the first Put.
  std::shared_ptr<const TlsContext> context() const;
  void Put(std::shared_ptr<const TlsContext> context);

  // A handshake with `peer` has ended, on worker `worker`.
  void Ended(size_t worker, base::TimePoint now, TlsFailure failure, std::string_view peer, std::string_view detail);

 private:
  const std::string label_;  // "listener NAME"
  std::array<metrics::Counter*, kTlsFailures> ended_;
  mutable std::mutex mutex_;
  // Under mutex_:
  std::shared_ptr<const TlsContext> context_;
  base::LogLimit log_;  // of handshakes that failed: any stranger can cause one
};

}  // namespace sluice::net

#include "proxy/call_id.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

namespace sluice::proxy {

uint32_t CallId::Process() {
  // The machine's uptime to the nanosecond and the pid: no secret, and no two processes of a machine have both alike.
  static const auto process =
      static_cast<uint32_t>(base::Hash64(static_cast<uint64_t>(base::Clock::Steady().Now().time_since_epoch().count()),
                                         static_cast<uint64_t>(::getpid())));
  return process;
}

}  // namespace sluice::proxy

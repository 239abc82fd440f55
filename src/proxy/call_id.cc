#include "proxy/call_id.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

namespace sluice::proxy {

namespace {

// The machine's uptime to the nanosecond and the pid: no secret, and no two processes of a machine have both alike.
uint32_t& OfThisProcess() {
  static auto process =
      static_cast<uint32_t>(base::Hash64(static_cast<uint64_t>(base::Clock::Steady().Now().time_since_epoch().count()),
                                         static_cast<uint64_t>(::getpid())));
  return process;
}

}  // namespace

uint32_t CallId::Process() { return OfThisProcess(); }
void CallId::SetProcessForTest(uint32_t process) { OfThisProcess() = process; }

}  // namespace sluice::proxy

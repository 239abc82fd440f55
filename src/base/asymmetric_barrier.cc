#include "base/asymmetric_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

namespace sluice::base {
namespace {

long Membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

bool Register() {
  if (SLUICE_TSAN) return false;
  long commands = Membarrier(MEMBARRIER_CMD_QUERY);
  if (commands < 0 || (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return false;
  return Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
         Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

bool AsymmetricBarrier::Available() {
  static const bool available = Register();
  return available;
}

void AsymmetricBarrier::Heavy() {
  // It worked once, so it works: the registration belongs to the address space and cannot be taken back. A
  // filter installed later would break readers silently; better stop.
  SLUICE_CHECK(Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0);
}

}  // namespace sluice::base

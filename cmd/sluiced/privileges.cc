#include "privileges.h"

#include <sys/prctl.h>
#include <unistd.h>

namespace sluiced {

void DropPrivileges(bool core_dumps) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifndef SLUICE_SANITIZED  // the leak check at the end reads the process as a debugger does
  if (!core_dumps) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

bool IsRoot() { return geteuid() == 0; }

}  // namespace sluiced

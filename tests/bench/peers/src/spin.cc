// Keeps one core out of its halt state at the lowest priority (SCHED_IDLE), so that in a virtual
// machine a wake-up does not cost a trip through the hypervisor. Any normal task preempts it at once.
//   spin CORE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the benchmark
  cpu_set_t s;
  CPU_ZERO(&s);
  CPU_SET(atoi(argv[1]), &s);
  sched_param p{};
  if (sched_setaffinity(0, sizeof s, &s) || sched_setscheduler(0, SCHED_IDLE, &p) || setpriority(PRIO_PROCESS, 0, 19))
    return 1;
  for (;;) asm volatile("" ::: "memory");
}

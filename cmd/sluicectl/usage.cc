// The help text: the whole of the command line, exit codes included.
#include "args.h"

namespace sluice::ctl {

std::string_view Usage() {
  return R"(sluicectl: looks at and changes a running sluice daemon

Usage: sluicectl [FLAG...] COMMAND [ARGUMENT...]

Look
  status                       the process: version, uptime, readiness, load
  clusters [CLUSTER]           clusters: policy, version and digest of their lists
  endpoints CLUSTER            a cluster's endpoints: state, connection, weight, share of keys, calls
  limits                       limits of rate and concurrency: what is in force, who waits
  cache stats                  the response cache: size, hits, why responses were not kept
  certs                        certificates of TLS: who uses them, how long they last, why a new file is not in force
  metrics                      all metrics, in Prometheus text format
  log-level                    the log level

Change a cluster's endpoints (each whole or not at all; no call fails because of it)
  add CLUSTER ENDPOINT...      ENDPOINT is [NAME=]ADDRESS[@WEIGHT]; without NAME the address is the name
  replace CLUSTER ENDPOINT...  the list becomes exactly this
  remove CLUSTER NAME...       no new calls; calls in flight finish
  reweight CLUSTER NAME@WEIGHT...
  drain-endpoint CLUSTER NAME...    stays in the list, takes no new calls
  undrain-endpoint CLUSTER NAME...
    --weight W                 for add, replace and reweight: of the endpoints without @WEIGHT
    --if-version N             only if the list is still at version N
    --preview                  say what would move, change nothing

Change a limit (at once, also for calls that wait; until a restart, or a reload with another configuration of it)
  limit set NAME               NAME as `limits` shows it
    --rate R                   calls a second, like 100 or 0.5; 0: no limit
    --burst N                  calls that may start at once after a pause
    --max N                    calls under way at once; 0: no limit
    --queue N                  calls that may wait; the next is refused
  limit reset NAME             back to what is configured

Drop cached responses (calls that begin after it get nothing from before)
  cache purge                  all of them, or only
    --service S                those of a service, like pkg.Service
    --method M                 and of one of its methods, like Get
    --key TEXT                 and to one request message: TEXT is the message's bytes, literally
    --key-hex HEX              ... the bytes in hex, like 0a03616263
    --key-file FILE            ... the bytes in a file (a serialized message; what `protoc --encode` writes)

Change the daemon
  reload                       read the configuration file again; with an error in it nothing changes
  log-level LEVEL              trace, debug, info, warn, error or off
  drain [--timeout 30s]        take no new work, finish what runs (at most so long), then exit
  stop                         exit now; calls in flight are cut

Other
  completion bash|zsh          a completion script, on standard output

Flags
  --address ADDRESS            unix:/path or host:port of the daemon's admin RPC
                               (default: $SLUICE_ADMIN, else unix:/tmp/sluice-admin.sock)
  --tls-ca FILE                TLS: who signs the daemon's certificate (PEM, as the next two)
  --tls-cert FILE              ... our certificate; the daemon looks up in it what we may do
  --tls-key FILE               ... its key
  --tls-server-name NAME       ... whom the daemon's certificate is for, if not for the host in --address
  --timeout DURATION           for the daemon's answer (default 10s); after `drain` it is the drain's
  --json                       print the answer as JSON; 64-bit numbers are strings there
  -h, --help                   this text
  --version                    the version of sluicectl

Exit codes
  0  done
  1  the daemon refused or failed; standard error says why and what to do
  2  the command line is wrong
  3  no daemon answers at the address

Examples
  sluicectl add users c=10.0.0.7:50051@2 d=10.0.0.8:50051
  sluicectl reweight users c d --weight 4 --preview
  sluicectl limit set cluster/users/rate --rate 500 --burst 50
  sluicectl cache purge --service pkg.Users --method Get --key-hex 0a03616263
  sluicectl --address 127.0.0.1:9900 --json endpoints users
)";
}

}  // namespace sluice::ctl

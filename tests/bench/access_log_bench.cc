// The access log: what a worker pays for a call (RecordLayout, RecordRing), and what the log's thread pays to format
// one.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "proxy/access_log/log_stream.h"

namespace sluice::proxy {
namespace {

CallRecord PlainCall() {
  CallRecord call;
  call.peer = "127.0.0.1:40000";
  call.authority = "127.0.0.1:18080";
  call.path = "/pkg.Service/Method";
  call.route = "routes[0]";
  call.cluster = "c";
  call.endpoint = "127.0.0.1:19001";
  call.attempts = 1;
  call.request_bytes = call.response_bytes = 37;
  call.to_upstream = std::chrono::microseconds(12);
  call.to_response = call.total = std::chrono::microseconds(345);
  call.ended = base::TimePoint(std::chrono::hours(1));
  return call;
}

AccessLogOptions Options() { return {AccessLogOptions::Format::kJson, "/dev/null"}; }

// Lines to /dev/null, in batches. `rounds`: the time of taking, formatting and writing them counts too; else only the
// copies into the ring do, as a worker meets them.
void Lines(benchmark::State& state, bool rounds) {
  LogTotals totals;
  LogStream stream(Options(), 1, totals);
  SLUICE_CHECK(stream.Open().ok());
  const CallRecord call = PlainCall();
  constexpr int kBatch = 2000;
  while (state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch; ++i) benchmark::DoNotOptimize(stream.Write(call, 0));
    if (!rounds) state.PauseTiming();
    stream.Round(call.ended, {});
    if (!rounds) state.ResumeTiming();
  }
  SLUICE_CHECK(totals.dropped.load() == 0);
}
BENCHMARK_CAPTURE(Lines, write, false);
BENCHMARK_CAPTURE(Lines, write_and_round, true);

}  // namespace
}  // namespace sluice::proxy

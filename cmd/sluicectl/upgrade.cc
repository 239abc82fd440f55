#include "sluicectl/upgrade.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "sluicectl/print.h"
#include "sluicectl/run.h"

namespace sluice::ctl {

namespace v1 = admin::v1;

// The daemon gives up after 30 s, with up to 10 s before that for changes that are under way.
constexpr std::chrono::milliseconds kAnswerMax{45'000};

int RunUpgrade(const Args& args, v1::Admin::Stub& stub, const ExplainStatus& explain, bool* same) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::max(args.timeout, kAnswerMax));
  v1::UpgradeRequest request;
  request.set_only_if_changed(args.or_reload);
  v1::UpgradeResponse response;
  const grpc::Status status = stub.Upgrade(&context, request, &response);
  if (!status.ok()) {
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto reason = trailers.find("sluice-reason");
    return explain(status, reason == trailers.end() ? "" : std::string(reason->second.data(), reason->second.size()));
  }
  *same = !response.replaced();
  if (*same) return kDone;
  const std::string text = args.json ? Json(response)
                                     : "process " + std::to_string(response.pid()) + " (version " + response.version() +
                                           ", generation " + std::to_string(response.generation()) + ") serves\n";
  return std::fputs(text.c_str(), stdout) == EOF || std::fflush(stdout) != 0 ? kRefused : kDone;
}

std::string PrintProcesses(const v1::ListProcessesResponse& processes) {
  std::vector<std::vector<std::string>> rows{{"PID", "GENERATION", "VERSION", "STATE", "FOR", "CALLS", "CONNECTIONS"}};
  for (const v1::Process& process : processes.processes()) {
    rows.push_back({std::to_string(process.pid()), std::to_string(process.generation()), process.version(),
                    process.serving() ? "serving" : "leaving",
                    AgeText(static_cast<uint64_t>(std::max(0.0, process.since_seconds()))),
                    std::to_string(process.calls()), std::to_string(process.connections())});
  }
  return Table(rows, {true, true, false, false, false, true, true});
}

}  // namespace sluice::ctl

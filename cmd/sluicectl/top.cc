#include "sluicectl/top.h"

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "sluicectl/run.h"
#include "sluicectl/terminal.h"
#include "sluicectl/top_view.h"

namespace sluice::ctl {
namespace {

using Stub = admin::v1::Admin::Stub;

constexpr size_t kEndpointsOnce = 1000, kEndpointsOnScreen = 10;  // of a cluster

class Looker {
 public:
  Looker(Stub& stub, std::chrono::milliseconds timeout) : stub_(stub), timeout_(timeout) {}

  // nullopt: failed() says why.
  std::optional<TopSample> Look() {
    TopSample sample;
    admin::v1::GetMetricsResponse metrics;
    const bool all = Ask(&Stub::GetServer, &sample.server) && Ask(&Stub::ListClusters, &sample.clusters) &&
                     Ask(&Stub::ListLimits, &sample.limits) && Ask(&Stub::ListHotKeys, &sample.keys) &&
                     Ask(&Stub::GetMetrics, &metrics);
    if (!all) return std::nullopt;
    sample.at = std::chrono::steady_clock::now();
    sample.metrics = ReadCallMetrics(metrics.text());
    return sample;
  }
  const grpc::Status& failed() const { return failed_; }
  const std::string& reason() const { return reason_; }

 private:
  template <typename Request, typename Response>
  bool Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*), Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout_);
    failed_ = (stub_.*method)(&context, Request(), response);
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto reason = trailers.find("sluice-reason");
    reason_ = reason == trailers.end() ? "" : std::string(reason->second.data(), reason->second.size());
    return failed_.ok();
  }

  Stub& stub_;
  const std::chrono::milliseconds timeout_;
  grpc::Status failed_;
  std::string reason_;
};

int Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return kDone;
  std::fprintf(stderr, "sluicectl: cannot write to standard output\n");
  return kRefused;
}

}  // namespace

int RunTop(const Args& args, Stub& stub,
           const std::function<int(const grpc::Status&, const std::string& reason)>& explain) {
  Looker looker(stub, args.timeout);
  std::optional<TopSample> before = looker.Look();
  if (!before) return explain(looker.failed(), looker.reason());
  if (args.once || !Terminal::Present()) {
    std::this_thread::sleep_for(args.interval);
    const std::optional<TopSample> now = looker.Look();
    return now ? Print(PrintTop(*before, *now, kEndpointsOnce)) : explain(looker.failed(), looker.reason());
  }
  std::optional<TopSample> now = before;
  {
    Terminal terminal;
    while (now) {
      if (!terminal.Draw(PrintTop(*before, *now, kEndpointsOnScreen) + "\nq: quit\n")) return kRefused;
      const Terminal::Event event = terminal.Wait(args.interval);
      if (event == Terminal::Event::kQuit) return kDone;
      if (event == Terminal::Event::kTime) before = std::exchange(now, looker.Look());
    }
  }
  return explain(looker.failed(), looker.reason());  // on the screen as it was
}

}  // namespace sluice::ctl

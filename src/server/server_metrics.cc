// The server's metrics that are computed when they are asked for.
#include "base/memory_budget.h"
#include "base/slice.h"
#include "metrics/open_metrics.h"
#include "proxy/access_log/access_log.h"
#include "proxy/handoff/handoff.h"
#include "runtime/runtime.h"
#include "server/endpoint_metrics.h"
#include "server/server.h"

namespace sluice::server {

std::string Server::RenderOpenMetrics() {
  return metrics::ToOpenMetrics(registry_->RenderPrometheus(), traces_.exemplars());
}

void Server::AddMetrics() {
  reloads_ok_ = registry_->AddCounter("sluice_config_reloads_total", "Reloads of the configuration, by result.",
                                      {{"result", "ok"}});
  reloads_failed_ = registry_->AddCounter("sluice_config_reloads_total", "Reloads of the configuration, by result.",
                                          {{"result", "failed"}});
  registry_->AddCallback("sluice_buffered_bytes", "Memory in read and write buffers.", "gauge", [] {
    return std::vector<metrics::Sample>{{{}, static_cast<double>(base::Block::LiveBytes())}};
  });
  registry_->AddCallback("sluice_memory_held_bytes", "Memory taken for buffers, calls and metadata.", "gauge", [] {
    return std::vector<metrics::Sample>{{{}, static_cast<double>(base::MemoryBudget::held())}};
  });
  registry_->AddCallback("sluice_memory_limit_bytes", "What may be held, with the cache's capacity.", "gauge", [] {
    return std::vector<metrics::Sample>{{{}, static_cast<double>(base::MemoryBudget::limit())}};
  });
  registry_->AddCollector("sluice_cluster_version", "Version of the cluster's endpoint list.", "gauge",
                          [this](metrics::Samples& out) {
                            for (const auto& [name, version] : clusters_->Versions())
                              out.Add({{"cluster", name}}, static_cast<double>(version));
                          });
  registry_->AddCollector("sluice_access_log_lines_total", "Lines of the access log, by what became of them.",
                          "counter", [](metrics::Samples& out) {
                            const proxy::AccessLog::Totals lines = proxy::AccessLog::AllTotals();
                            out.Add({{"result", "written"}}, static_cast<double>(lines.written));
                            out.Add({{"result", "dropped"}}, static_cast<double>(lines.dropped));
                            out.Add({{"result", "lost"}}, static_cast<double>(lines.lost));
                          });
  registry_->AddCollector("sluice_traced_calls_total", "Calls that were sampled, by what became of their spans.",
                          "counter", [this](metrics::Samples& out) {
                            const tracing::ExportTotals& calls = traces_.totals();
                            out.Add({{"result", "exported"}}, static_cast<double>(calls.exported));
                            out.Add({{"result", "dropped"}}, static_cast<double>(calls.dropped));
                            out.Add({{"result", "lost"}}, static_cast<double>(calls.lost));
                          });
  registry_->AddCollector(
      "sluice_trace_spans_rejected_total", "Spans that the collector has taken and said that it rejects.", "counter",
      [this](metrics::Samples& out) { out.Add({}, static_cast<double>(traces_.totals().rejected)); });
  AddEndpointMetrics(*registry_, *clusters_);
  registry_->AddCallback("sluice_tasks", "Coroutines alive.", "gauge", [this] {
    return std::vector<metrics::Sample>{{{}, static_cast<double>(runtime_->LiveTasks())}};
  });
  using Stats = runtime::Worker::Stats;
  auto per_worker = [this](const char* name, const char* help, uint64_t Stats::*field) {
    registry_->AddCallback(name, help, "counter", [this, field] {
      std::vector<metrics::Sample> out;
      for (size_t i = 0; i < runtime_->size(); ++i) {
        out.push_back({{{"worker", std::to_string(i)}}, static_cast<double>(runtime_->worker(i).stats().*field)});
      }
      return out;
    });
  };
  per_worker("sluice_worker_turns_total", "Turns of the worker's loop.", &Stats::turns);
  per_worker("sluice_worker_tasks_total", "Tasks run.", &Stats::tasks_run);
  per_worker("sluice_worker_parks_total", "Times the worker slept for want of work.", &Stats::parks);
  registry_->AddCallback("sluice_worker_cpu_seconds_total", "CPU time of the worker's thread.", "counter", [this] {
    std::vector<metrics::Sample> out;
    for (size_t i = 0; i < runtime_->size(); ++i) {
      out.push_back(
          {{{"worker", std::to_string(i)}}, std::chrono::duration<double>(runtime_->worker(i).CpuTime()).count()});
    }
    return out;
  });
  auto per_handoff = [this](const char* name, const char* help, auto value) {
    registry_->AddCallback(name, help, "counter", [this, value] {
      std::vector<metrics::Sample> out;
      for (size_t i = 0; i < workers_.size(); ++i) {
        const auto& handoff = workers_[i]->handoff;
        const proxy::Handoff::Stats moves = handoff == nullptr ? proxy::Handoff::Stats() : handoff->stats();
        out.push_back(
            {{{"worker", std::to_string(i)}}, static_cast<double>(value(moves, runtime_->worker(i).stats()))});
      }
      return out;
    });
  };
  using Moves = proxy::Handoff::Stats;
  per_handoff("sluice_worker_steals_total", "Calls and tasks that came from another worker and ran here.",
              [](const Moves& moves, const Stats& stats) { return moves.taken + stats.steals; });
  per_handoff("sluice_worker_hops_total", "Calls of the worker's connections that ran on another one.",
              [](const Moves& moves, const Stats&) { return moves.moved; });
  per_worker("sluice_worker_blocked_total", "Times a task held the worker longer than blocking_threshold.",
             &Stats::blocked);
  auto per_limit = [this](const char* name, const char* help, uint64_t admin::LimitView::*field) {
    registry_->AddCollector(name, help, "gauge", [this, field](metrics::Samples& out) {
      for (const admin::LimitView& limit : limits_.List()) {
        // One that limits nothing has no use to show; each cluster and route has some.
        if (out.all() || limit.rate > 0 || limit.max > 0 || limit.*field > 0)
          out.Add({{"limit", limit.name}}, static_cast<double>(limit.*field));
      }
    });
  };
  per_limit("sluice_limit_waiting", "Calls that wait for the limit.", &admin::LimitView::waiting);
  per_limit("sluice_limit_in_use", "Calls that hold a permit, or a token that comes back.", &admin::LimitView::in_use);
}

}  // namespace sluice::server

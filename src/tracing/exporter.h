// Exporter: takes traced calls out of the workers' rings, and sends them to the collector in batches. A thread of its
// own, which waits for nothing but its bell: gRPC's threads send.
//
//   rings --kBatchDelay, or a batch is full--> batch --Send--> on its way --answered--> exported
//                                                |                 |
//                                                |                 +--may be retried--> kept, back-off --> Send
//                                                |                 +--kTriesMax, or no retry--> lost
//                                                +-- full while one is on its way: calls stay in the rings, which drop
//
//   running --the rings are closed--> flushing --all is exported, or its bound is over--> ended
//
// So at most two batches are in memory, and what waits beyond them is bounded by the rings.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log_limit.h"
#include "metrics/exemplars.h"
#include "proxy/options.h"
#include "proxy/tracing/span_record.h"
#include "proxy/tracing/span_rings.h"
#include "tracing/otlp_client.h"
#include "tracing/otlp_writer.h"

namespace sluice::tracing {

// Traced calls of the process, by what became of them. Each publishes nothing but itself.
struct ExportTotals {
  std::atomic<uint64_t> exported{0};
  std::atomic<uint64_t> dropped{0};   // by workers: their ring was full
  std::atomic<uint64_t> lost{0};      // the collector did not take them
  std::atomic<uint64_t> rejected{0};  // spans of exported calls that the collector took and did not want
};

class Exporter {
 public:
  // A batch is sent after this long, if it is not full before; also how often the rings are looked at.
  static constexpr std::chrono::milliseconds kBatchDelay{500};
  // A batch of so many bytes is full: collectors take messages of 4 MiB by default.
  static constexpr size_t kBatchBytesMax = 2 << 20;
  // How often a batch is sent, and the wait between the first two; it is doubled after each.
  static constexpr int kTriesMax = 5;
  static constexpr std::chrono::milliseconds kBackoff{1000};
  // From the rings' end on: then what is left is lost.
  static constexpr std::chrono::milliseconds kFlushMax{2000};
  // A cancelled export has this long to say so.
  static constexpr std::chrono::milliseconds kGrace{500};
  static constexpr std::chrono::milliseconds kDozeAfter{2000};

  // Begins. `version`: of the process, as spans say it; `seed`: of the ids of attempts that have none. `exemplars`: of
  // the durations of calls by route; has a call of a client once the collector has taken it.
  Exporter(const proxy::TracingOptions& options, std::string version, std::shared_ptr<proxy::SpanRings> rings,
           std::shared_ptr<ExportTotals> totals, std::shared_ptr<metrics::Exemplars> exemplars, uint64_t seed);
  // After the rings were closed: waits for the end.
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // Any thread.
  bool ended() const { return ended_.load(std::memory_order_acquire) != 0; }
  // Blocks until the end, which is kFlushMax and kGrace at most after the rings were closed.
  void Wait() const;

 private:
  void Run();
  void TakeResult(base::TimePoint now);
  bool Fill(base::TimePoint now);
  void NoteExemplar(int64_t wall_offset);
  void SendIfDue(base::TimePoint now, bool flushing);
  void Lose(uint64_t calls, const std::string& why);
  void LoseAll();
  void CountDrops();
  bool Idle() const { return on_way_ == nullptr && writer_.calls() == 0; }
  void Sleep(base::TimePoint now, bool more);
  bool MayDoze();

  const proxy::TracingOptions options_;
  const std::shared_ptr<proxy::SpanRings> rings_;
  const std::shared_ptr<ExportTotals> totals_;
  const std::shared_ptr<metrics::Exemplars> exemplars_;
  std::atomic<uint32_t> ended_{0};

  // Of the thread.
  OtlpWriter writer_;
  proxy::SpanView view_;
  std::unique_ptr<OtlpClient> client_;
  base::TimePoint batch_began_{};                // while the writer has calls
  std::shared_ptr<const ReverseBuffer> on_way_;  // the batch that is being sent, or waits to be sent again
  uint32_t on_way_calls_ = 0;
  int tries_ = 0;  // of it
  // Of the writer's calls, and of those on their way; at most one for each of them.
  struct RouteExemplar {
    std::string route;
    metrics::Exemplar exemplar;
  };
  std::vector<RouteExemplar> batch_exemplars_, on_way_exemplars_;
  base::TimePoint retry_at_{}, last_seen_{};
  base::LogLimit drops_log_{1, std::chrono::seconds(10)};
  uint64_t dropped_seen_ = 0, lost_since_ = 0;  // lost_since_ 0: the collector takes what it is sent

  std::thread thread_;  // last: it uses all the others
};

}  // namespace sluice::tracing

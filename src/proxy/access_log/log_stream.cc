#include "proxy/access_log/log_stream.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/log.h"
#include "base/reopenable_sink.h"

namespace sluice::proxy {
namespace {

void AddTo(std::atomic<uint64_t>& total, uint64_t n) { total.fetch_add(n, std::memory_order_relaxed); }

}  // namespace

LogStream::LogStream(const AccessLogOptions& options, uint32_t workers, LogTotals& totals)
    : format_(options), file_(options.path, STDOUT_FILENO), totals_(totals) {
  for (uint32_t i = 0; i < workers; ++i) {
    rings_.push_back(std::make_unique<concurrent::RecordRing>(std::bit_ceil(options.buffer_bytes)));
  }
}

void LogStream::BeginClose(base::TimePoint deadline) {
  deadline_ = deadline;
  State open = State::kOpen;
  state_.compare_exchange_strong(open, State::kClosing, std::memory_order_acq_rel);
}

void LogStream::WakeForAny() {
  for (auto& ring : rings_) ring->WakeAfter(1);
}

bool LogStream::Empty() const {
  return std::all_of(rings_.begin(), rings_.end(), [](const auto& ring) { return ring->Empty(); });
}

void LogStream::Append(std::span<const uint8_t> record, int64_t wall_offset) {
  const size_t need = used_ + format_.LineBytesMax(record.size());
  if (need > room_) {
    const size_t room = std::max(need, kBatchBytes + kBatchBytes / 4);
    auto larger = std::make_unique_for_overwrite<char[]>(room);
    if (used_ > 0) std::memcpy(larger.get(), batch_.get(), used_);
    batch_ = std::move(larger);
    room_ = room;
  }
  char* const to = batch_.get() + used_;
  used_ += static_cast<size_t>(format_.Put(to, LogRecordView(record), wall_offset, time_) - to);
  ++batch_lines_;
}

LogStream::Result LogStream::Round(base::TimePoint now, base::Nanos wall_offset) {
  Result result;
  // The line that was begun in the former file is written anew in this one.
  if (file_.Adopt()) {
    cut_ = false;
    while (sent_ > 0 && batch_[sent_ - 1] != '\n') --sent_;
  }
  result.full = !Push(now);
  for (auto& ring : rings_) {
    bool more = true;
    while (more && !result.full) {
      while (used_ < kBatchBytes) {
        more = ring->Take([&](std::span<const uint8_t> record) { Append(record, wall_offset.count()); });
        if (!more) break;
        ++result.lines;
      }
      ring->Free();
      if (used_ >= kBatchBytes) result.full = !Push(now);
    }
    // While nothing can be written, no worker need wake the thread: what it waits for is the file.
    ring->WakeAfter(result.full ? kNoWake : std::min<uint64_t>(kWakeBytes, ring->capacity() / 2));
  }
  if (!result.full) result.full = !Push(now);
  full_ = result.full;
  CountDrops(now);
  if (now - drops_.last >= kDropsEnd) EndLosses(drops_, "keeps up again");
  return result;
}

// False: the file takes nothing more now.
bool LogStream::Push(base::TimePoint now) {
  while (sent_ < used_) {
    const bool mends = cut_;  // what is left of a line that was cut gets an end of its own
    const LogFile::Written written = file_.Write(mends ? "\n" : std::string_view(batch_.get() + sent_, used_ - sent_));
    if (written.full) return false;
    if (written.error != 0) {
      LoseRest(written.error, now);
      return true;
    }
    if (mends) {
      cut_ = written.bytes == 0;
    } else {
      sent_ += written.bytes;
    }
  }
  if (used_ > 0) EndLosses(losses_, "writable again");
  AddTo(totals_.written, batch_lines_);
  used_ = sent_ = batch_lines_ = 0;
  return true;
}

uint64_t LogStream::LinesLeft() const {
  return static_cast<uint64_t>(std::count(batch_.get() + sent_, batch_.get() + used_, '\n'));
}

// Of the batch. A line that was begun counts as lost, for its end is.
void LogStream::LoseRest(int error, base::TimePoint now) {
  const uint64_t lost = LinesLeft();
  if (sent_ > 0 && batch_[sent_ - 1] != '\n') cut_ = true;
  AddTo(totals_.written, batch_lines_ - lost);
  AddTo(totals_.lost, lost);
  used_ = sent_ = batch_lines_ = 0;
  Lose(losses_, lost, now, std::strerror(error));
}

void LogStream::CountDrops(base::TimePoint now) {
  uint64_t dropped = 0;
  for (auto& ring : rings_) dropped += ring->dropped();
  if (dropped == dropped_seen_) return;
  AddTo(totals_.dropped, dropped - dropped_seen_);
  Lose(drops_, dropped - dropped_seen_, now, "it does not keep up");
  dropped_seen_ = dropped;
}

void LogStream::End(base::TimePoint now) {
  uint64_t lost = LinesLeft();
  AddTo(totals_.written, batch_lines_ - lost);
  for (auto& ring : rings_) {
    while (ring->Take([](std::span<const uint8_t>) {})) ++lost;
    ring->Free();
  }
  used_ = sent_ = batch_lines_ = 0;
  AddTo(totals_.lost, lost);
  if (lost > 0) Lose(losses_, lost, now, "it took too little until the end");
  CountDrops(now);
  EndLosses(losses_, "closed");
  EndLosses(drops_, "closed");
  state_.store(State::kClosed, std::memory_order_release);
}

void LogStream::Lose(LogLosses& losses, uint64_t lines, base::TimePoint now, std::string_view why) {
  if (losses.lines == 0) {
    losses.why = why;
    base::ReopenableSink::SayIfHeard([&] { SLUICE_LOG_ERROR("access log {}: lines are lost: {}", file_.name(), why); });
  }
  losses.lines += lines;
  losses.last = now;
}

void LogStream::EndLosses(LogLosses& losses, std::string_view what) {
  if (losses.lines == 0) return;
  base::ReopenableSink::SayIfHeard([&] {
    SLUICE_LOG_WARN("access log {}: {}; {} lines were lost: {}", file_.name(), what, losses.lines, losses.why);
  });
  losses.lines = 0;
}

}  // namespace sluice::proxy

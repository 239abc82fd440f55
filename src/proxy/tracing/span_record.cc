#include "proxy/tracing/span_record.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace sluice::proxy {
namespace {

struct AttemptWords {
  uint64_t span;
  int64_t began, ended;
  uint8_t code;
  bool hedge;
};
struct WaitWords {
  int64_t ended, nanos;
};

struct Measure {
  size_t bytes = 0;
  void Put(const void*, size_t size) { bytes += size; }
};
struct Copy {
  uint8_t* to;
  void Put(const void* from, size_t size) {
    if (size > 0) std::memcpy(to, from, size);
    to += size;
  }
};

template <typename Out, typename T>
void PutWords(Out& out, const T& words) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.Put(&words, sizeof(words));
}

template <typename Out>
void PutText(Out& out, std::string_view text, size_t bytes_max) {
  const auto size = static_cast<uint16_t>(std::min(text.size(), bytes_max));
  out.Put(&size, sizeof(size));
  out.Put(text.data(), size);
}

int64_t Nanos(base::TimePoint at) { return at.time_since_epoch().count(); }

template <typename Out>
void Pack(Out& out, const CallRecord& call, const CallTrace& trace, std::string_view state) {
  SpanWords words;
  words.trace = trace.own.trace;
  words.span = trace.own.span;
  words.parent = trace.parent;
  words.ended = Nanos(call.ended);
  words.durations = {call.to_upstream.count(), call.to_response.count(), call.total.count()};
  words.bytes = {call.request_bytes, call.response_bytes};
  words.attempts = call.attempts;
  words.status = static_cast<uint8_t>(call.status);
  words.fetch = call.fetch;
  words.sampled = trace.own.sampled;
  words.random = trace.own.random;
  words.attempt_count = static_cast<uint8_t>(std::min(trace.attempts.size(), kSpanAttemptsMax));
  words.wait_count = static_cast<uint8_t>(std::min(trace.waits.size(), kSpanWaitsMax));
  PutWords(out, words);
  // By SpanText.
  PutText(out, call.path, kSpanPathBytesMax);
  for (const std::string_view name : {call.authority, call.peer, call.client, call.route, call.cluster, call.cause}) {
    PutText(out, name, kSpanNameBytesMax);
  }
  PutText(out, call.detail, kSpanPathBytesMax);
  for (const std::string_view name : {call.processed, call.limit, call.cache, call.request_id}) {
    PutText(out, name, kSpanNameBytesMax);
  }
  PutText(out, state.size() <= kSpanStateBytesMax ? state : std::string_view(), kSpanStateBytesMax);
  for (size_t i = 0; i < words.attempt_count; ++i) {
    const TracedAttempt& attempt = trace.attempts[i];
    PutWords(out, AttemptWords{attempt.span, Nanos(attempt.began), Nanos(attempt.ended),
                               static_cast<uint8_t>(attempt.code), attempt.hedge});
    PutText(out, attempt.endpoint, kSpanNameBytesMax);
    PutText(out, attempt.end, kSpanNameBytesMax);
  }
  for (size_t i = 0; i < words.wait_count; ++i) {
    const TracedWait& wait = trace.waits[i];
    PutWords(out, WaitWords{Nanos(wait.ended), wait.time.count()});
    PutText(out, wait.name, kSpanNameBytesMax);
  }
}

// A record is this process's own, so its lengths are what Pack has made.
struct Source {
  const uint8_t* from;

  template <typename T>
  T Words() {
    T words;
    std::memcpy(&words, from, sizeof(words));
    from += sizeof(words);
    return words;
  }
  std::string_view Text() {
    const auto size = Words<uint16_t>();
    const std::string_view text(reinterpret_cast<const char*>(from), size);
    from += size;
    return text;
  }
};

}  // namespace

size_t MeasureSpan(const CallRecord& call, const CallTrace& trace, std::string_view state) {
  Measure out;
  Pack(out, call, trace, state);
  return out.bytes;
}

void CopySpan(const CallRecord& call, const CallTrace& trace, std::string_view state, uint8_t* to) {
  Copy out{to};
  Pack(out, call, trace, state);
}

void SpanView::Read(std::span<const uint8_t> record) {
  Source source{record.data()};
  words = source.Words<SpanWords>();
  for (std::string_view& text : texts) text = source.Text();
  attempts.clear();
  for (size_t i = 0; i < words.attempt_count; ++i) {
    const auto read = source.Words<AttemptWords>();
    const std::string_view endpoint = source.Text();
    attempts.push_back({read.span, read.began, read.ended, read.code, read.hedge, endpoint, source.Text()});
  }
  waits.clear();
  for (size_t i = 0; i < words.wait_count; ++i) {
    const auto read = source.Words<WaitWords>();
    waits.push_back({read.ended, read.nanos, source.Text()});
  }
}

}  // namespace sluice::proxy

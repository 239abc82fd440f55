#include "proxy/insight/failed_calls.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace sluice::proxy {
namespace {

struct Text {
  std::string_view CallRecord::*from;
  std::string FailedCall::*to;
  uint16_t bytes_max;
};

// In the order of a record.
constexpr Text kTexts[] = {
    {&CallRecord::peer, &FailedCall::peer, FailedCalls::kNameBytesMax},
    {&CallRecord::client, &FailedCall::client, FailedCalls::kNameBytesMax},
    {&CallRecord::authority, &FailedCall::authority, FailedCalls::kNameBytesMax},
    {&CallRecord::path, &FailedCall::path, FailedCalls::kPathBytesMax},
    {&CallRecord::route, &FailedCall::route, FailedCalls::kNameBytesMax},
    {&CallRecord::cluster, &FailedCall::cluster, FailedCalls::kNameBytesMax},
    {&CallRecord::endpoint, &FailedCall::endpoint, FailedCalls::kNameBytesMax},
    {&CallRecord::tries, &FailedCall::tries, FailedCalls::kListBytesMax},
    {&CallRecord::waits, &FailedCall::waits, FailedCalls::kListBytesMax},
    {&CallRecord::limit, &FailedCall::limit, FailedCalls::kNameBytesMax},
    {&CallRecord::cause, &FailedCall::cause, FailedCalls::kNameBytesMax},
    {&CallRecord::processed, &FailedCall::processed, FailedCalls::kNameBytesMax},
    {&CallRecord::detail, &FailedCall::detail, FailedCalls::kListBytesMax},
    {&CallRecord::cache, &FailedCall::cache, FailedCalls::kNameBytesMax},
    {&CallRecord::request_id, &FailedCall::request_id, kRequestIdBytesMax},
};

constexpr size_t BytesMax() {
  constexpr size_t kCutMark = 40;  // "...(+N bytes)"
  size_t bytes = sizeof(LogRecord);
  for (const Text& text : kTexts) bytes += text.bytes_max + kCutMark + sizeof(uint16_t);
  return bytes;
}
static_assert(BytesMax() <= FailedCalls::kRecordBytesMax);

// gRPC over HTTP/2, "Status-Message"; what is no code stays as it is. As much as fits `out`, whole characters of UTF-8.
std::string_view PercentDecode(std::string_view text, std::span<char> out) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  size_t size = 0, at = 0;
  for (; at < text.size() && size < out.size(); ++size) {
    const bool coded = text[at] == '%' && at + 2 < text.size() && digit(text[at + 1]) >= 0 && digit(text[at + 2]) >= 0;
    out[size] = coded ? static_cast<char>(digit(text[at + 1]) * 16 + digit(text[at + 2])) : text[at];
    at += coded ? 3 : 1;
  }
  const auto inside = [&](size_t i) { return (static_cast<unsigned char>(out[i]) & 0xc0) == 0x80; };
  if (at < text.size() && size == out.size()) {
    while (size > 0 && inside(size - 1)) --size;
    if (size > 0 && (static_cast<unsigned char>(out[size - 1]) & 0xc0) == 0xc0) --size;
  }
  return {out.data(), size};
}

}  // namespace

// What the proxy or the endpoint could not do is rare; what a limit, the client or the application wants is common.
FailedCalls::Kind FailedCalls::KindOf(GrpcCode status, const base::Error* cause) {
  if (cause != nullptr) {
    switch (cause->kind) {
      case base::ErrorKind::kCancelled:
      case base::ErrorKind::kRateLimited:
      case base::ErrorKind::kConcurrencyLimited:
      case base::ErrorKind::kQueueTime:
      case base::ErrorKind::kDeadlineTooNear:
      case base::ErrorKind::kTooManyClients:
      case base::ErrorKind::kQueueFull:
      case base::ErrorKind::kMemoryLimited:
      case base::ErrorKind::kAccessDenied:
      case base::ErrorKind::kNoRoute:
      case base::ErrorKind::kJwtMissing:
      case base::ErrorKind::kJwtInvalid:
      case base::ErrorKind::kMalformedRequest:
      case base::ErrorKind::kFaultInjected:
        return Kind::kCommon;
      default:
        return Kind::kRare;
    }
  }
  switch (status) {
    case GrpcCode::kUnknown:
    case GrpcCode::kDeadlineExceeded:
    case GrpcCode::kInternal:
    case GrpcCode::kUnavailable:
    case GrpcCode::kDataLoss:
      return Kind::kRare;
    default:
      return Kind::kCommon;
  }
}

FailedCalls::FailedCalls(uint32_t kept, uint32_t workers) : kept_(kept) {
  for (const Text& text : kTexts) layout_.AddText(text.from, text.bytes_max);
  for (uint32_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<PerWorker>(kept));
}

bool FailedCalls::Takes(Kind kind, base::TimePoint now, uint32_t worker) {
  if (kept_ == 0) return false;
  if (kind == Kind::kRare) return true;
  PerWorker& mine = *workers_[worker];
  if (now - mine.second_began >= std::chrono::seconds(1)) {
    mine.second_began = now;
    mine.in_second = 0;
  }
  if (mine.in_second < kCommonPerSecond) {
    ++mine.in_second;
    return true;
  }
  // One writer; the count publishes nothing but itself.
  mine.left_out.store(mine.left_out.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return false;
}

void FailedCalls::Add(const CallRecord& told, Kind kind, uint32_t worker) {
  alignas(LogRecord) uint8_t record[kRecordBytesMax];
  RecordLayout::Lengths lengths;
  // Of a status that the endpoint gave, its own words.
  CallRecord call = told;
  char words[256];
  if (call.detail.empty() && call.trailers != nullptr) {
    if (const http2::Field* message = call.trailers->Find(http2::Token::kGrpcMessage))
      call.detail = PercentDecode(message->value(), words);
  }
  const size_t size = layout_.Measure(call, lengths);
  layout_.Copy(call, lengths, record);
  workers_[worker]->rings[static_cast<size_t>(kind)].Write({record, size});
}

FailedCall FailedCalls::Unpack(LogRecordView record) {
  const LogRecord& words = *record.words;
  FailedCall call;
  call.id.value = words.call_id;
  call.status = static_cast<GrpcCode>(words.status);
  call.ended = base::TimePoint(base::Nanos(words.ended));
  call.to_upstream = base::Nanos(words.durations[0]);
  call.to_response = base::Nanos(words.durations[1]);
  call.total = base::Nanos(words.durations[2]);
  call.connecting = base::Nanos(words.durations[3]);
  call.attempts = static_cast<uint32_t>(words.counts[0]);
  call.request_bytes = words.counts[1];
  call.response_bytes = words.counts[2];
  for (const Text& text : kTexts) call.*text.to = record.NextText();
  return call;
}

FailedCalls::Seen FailedCalls::Read() const {
  Seen seen;
  for (const auto& worker : workers_) {
    seen.left_out += worker->left_out.load(std::memory_order_relaxed);
    for (const concurrent::LastRecords& ring : worker->rings) {
      seen.written += ring.written();
      ring.Read([&](std::span<const uint8_t> record) { seen.calls.push_back(Unpack(LogRecordView(record))); });
    }
  }
  std::stable_sort(seen.calls.begin(), seen.calls.end(), [](const FailedCall& a, const FailedCall& b) {
    return a.ended != b.ended ? a.ended > b.ended : a.id.value > b.id.value;
  });
  return seen;
}

}  // namespace sluice::proxy

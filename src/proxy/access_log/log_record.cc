#include "proxy/access_log/log_record.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace sluice::proxy {
namespace {

constexpr std::string_view kCutBegin = "...(+", kCutEnd = " bytes)", kBetween = ",";

// How many bytes the mark takes that says `cut` were left out.
size_t CutMarkSize(size_t cut) {
  size_t digits = 1;
  while (cut >= 10) {
    cut /= 10;
    ++digits;
  }
  return kCutBegin.size() + digits + kCutEnd.size();
}

char* Append(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

}  // namespace

void RecordLayout::AddText(std::string_view CallRecord::*member, uint16_t bytes_max) {
  SLUICE_CHECK(texts_.size() < kTextsMax);
  texts_.push_back({AccessLogField::Source::kCall, member, {}, bytes_max});
}

void RecordLayout::AddMetadata(AccessLogField::Source source, std::string name, uint16_t bytes_max) {
  SLUICE_CHECK(texts_.size() < kTextsMax);
  texts_.push_back({source, nullptr, std::move(name), bytes_max});
}

const http2::HeaderList* RecordLayout::ListOf(const Text& text, const CallRecord& call) {
  return text.source == AccessLogField::Source::kMetadata ? call.request : call.trailers;
}

// Before it is cut. Values of one name are joined, as RFC 9110 5.3 allows.
size_t RecordLayout::FullSize(const Text& text, const CallRecord& call) {
  if (text.member != nullptr) return (call.*text.member).size();
  const http2::HeaderList* list = ListOf(text, call);
  if (list == nullptr) return 0;
  size_t size = 0, found = 0;
  for (const http2::Field* field : *list) {
    if (field->name() != text.name) continue;
    size += field->value_size;
    ++found;
  }
  return found == 0 ? 0 : size + (found - 1) * kBetween.size();
}

size_t RecordLayout::Measure(const CallRecord& call, Lengths& lengths) const {
  size_t bytes = sizeof(LogRecord) + texts_.size() * sizeof(uint16_t);
  for (size_t i = 0; i < texts_.size(); ++i) {
    const Text& text = texts_[i];
    size_t size = FullSize(text, call);
    if (size > text.bytes_max) [[unlikely]]
      size = text.bytes_max + CutMarkSize(size - text.bytes_max);
    lengths[i] = static_cast<uint16_t>(size);
    bytes += size;
  }
  return bytes;
}

void RecordLayout::Copy(const CallRecord& call, const Lengths& lengths, uint8_t* to) const {
  const LogRecord words{
      call.ended.time_since_epoch().count(),
      {call.to_upstream.count(), call.to_response.count(), call.total.count(), call.connecting.count()},
      {call.attempts, call.request_bytes, call.response_bytes},
      call.id.value,
      static_cast<uint32_t>(call.status),
      static_cast<uint32_t>(texts_.size())};
  std::memcpy(to, &words, sizeof(words));
  std::memcpy(to + sizeof(words), lengths.data(), texts_.size() * sizeof(uint16_t));
  char* out = reinterpret_cast<char*>(to + sizeof(words) + texts_.size() * sizeof(uint16_t));
  for (size_t i = 0; i < texts_.size(); ++i) {
    const Text& text = texts_[i];
    if (lengths[i] == 0) continue;
    char* const end = out + lengths[i];
    size_t room = std::min<size_t>(lengths[i], text.bytes_max);
    auto put = [&](std::string_view part) {
      part = part.substr(0, room);
      out = Append(out, part);
      room -= part.size();
    };
    if (text.member != nullptr) {
      put(call.*text.member);
    } else {
      bool first = true;
      for (const http2::Field* field : *ListOf(text, call)) {
        if (field->name() != text.name) continue;
        if (!std::exchange(first, false)) put(kBetween);
        put(field->value());
      }
    }
    if (out == end) [[likely]]
      continue;
    out = Append(out, kCutBegin);
    out = std::to_chars(out, end, FullSize(text, call) - text.bytes_max).ptr;
    out = Append(out, kCutEnd);
  }
}

}  // namespace sluice::proxy

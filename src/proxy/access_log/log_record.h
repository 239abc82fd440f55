// RecordLayout: what of a call goes through the ring to the log's thread: a few words, and the texts that the line has.
//
//   [ LogRecord | length of each text (u16) | the texts ]
//
// Made once from the configuration; a worker measures and copies by it, the log's thread reads by it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/call_record.h"
#include "proxy/options.h"

namespace sluice::proxy {

// The bounds of texts in a line, in bytes. A text that is longer is cut there, and ends with "...(+N bytes)".
inline constexpr uint16_t kLogNameBytesMax = 256;     // client, authority, route, cluster, endpoint, and words of ours
inline constexpr uint16_t kLogPathBytesMax = 1024;    // path
inline constexpr uint16_t kLogListBytesMax = 2048;    // tries, waited
inline constexpr uint16_t kLogDetailBytesMax = 1024;  // detail
inline constexpr uint16_t kLogMetadataBytesMax = 1024;  // a metadata field; of several with one name all together

// The words of a call.
struct LogRecord {
  int64_t ended = 0;  // nanoseconds of the steady clock
  // to_upstream, to_response, total, connecting, in nanoseconds; negative: not reached.
  std::array<int64_t, 4> durations{};
  std::array<uint64_t, 3> counts{};  // attempts, request_bytes, response_bytes
  uint64_t call_id = 0;              // CallId
  uint32_t status = 0;               // GrpcCode
  uint32_t texts = 0;
};

// Immutable once its texts are added.
class RecordLayout {
 public:
  static constexpr size_t kTextsMax = AccessLogOptions::kFieldsMax;
  using Lengths = std::array<uint16_t, kTextsMax>;

  // In the order in which lines have them; at most kTextsMax.
  void AddText(std::string_view CallRecord::*member, uint16_t bytes_max);
  void AddMetadata(AccessLogField::Source source, std::string name, uint16_t bytes_max = kLogMetadataBytesMax);
  size_t texts() const { return texts_.size(); }

  // Bytes of the record, and the lengths that Copy wants.
  size_t Measure(const CallRecord& call, Lengths& lengths) const;
  // `to`: room for what Measure said, aligned for LogRecord.
  void Copy(const CallRecord& call, const Lengths& lengths, uint8_t* to) const;

 private:
  struct Text {
    AccessLogField::Source source = AccessLogField::Source::kCall;
    std::string_view CallRecord::*member = nullptr;  // kCall
    std::string name;                                // else
    uint16_t bytes_max = 0;
  };
  static const http2::HeaderList* ListOf(const Text& text, const CallRecord& call);
  static size_t FullSize(const Text& text, const CallRecord& call);

  std::vector<Text> texts_;
};

// A record in the ring.
struct LogRecordView {
  explicit LogRecordView(std::span<const uint8_t> record)
      : words(reinterpret_cast<const LogRecord*>(record.data())),
        lengths(reinterpret_cast<const uint16_t*>(words + 1)),
        text(reinterpret_cast<const char*>(lengths + words->texts)) {}

  // The next text, from the first on.
  std::string_view NextText() {
    const std::string_view out(text, *lengths++);
    text += out.size();
    return out;
  }

  const LogRecord* words;
  const uint16_t* lengths;
  const char* text;
};

}  // namespace sluice::proxy

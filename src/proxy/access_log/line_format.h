// LineFormat: the form of a line, compiled once from the configuration: a list of pieces, each with the literal before
// it and the kind of value, and the RecordLayout of what they need of a call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/access_log/line_text.h"
#include "proxy/access_log/log_record.h"
#include "proxy/options.h"

namespace sluice::proxy {

class LineFormat {
 public:
  // `options.format` is not kOff.
  explicit LineFormat(const AccessLogOptions& options);

  const RecordLayout& layout() const { return layout_; }
  // No line of a record of so many bytes is longer.
  size_t LineBytesMax(size_t record_bytes) const { return literal_bytes_ + record_bytes * kQuotedBytesPerByte; }
  // Writes the line with its end; returns where that is. `wall_offset`: from the steady clock to the time since 1970,
  // in nanoseconds.
  char* Put(char* to, LogRecordView record, int64_t wall_offset, TimeText& time) const;

 private:
  enum class Kind : uint8_t {
    kTime,          // bare
    kTimeQuoted,    // JSON
    kStatus,        // bare
    kStatusQuoted,  // JSON
    kCount,
    kMillis,
    kMillisOrNull,  // JSON
    kCallId,        // bare
    kCallIdQuoted,  // JSON
    kWord,
    kQuoted,
    kQuotedOrDash,
  };
  struct Piece {
    std::string before;
    Kind kind;
    uint8_t index = 0;  // of LogRecord's counts or durations
  };

  void Add(const AccessLogField& field, bool json);
  void AddPiece(std::string before, Kind kind, size_t index = 0);

  RecordLayout layout_;
  std::vector<Piece> pieces_;
  std::string end_;
  size_t literal_bytes_ = 0;  // of all literals, and room for values that are no texts
};

}  // namespace sluice::proxy

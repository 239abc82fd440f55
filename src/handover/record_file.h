// Records of a handover in memory files: written whole by one process, sealed, and read by the other. A memory file has
// no name and no size limit but memory's, and one that is sealed cannot change while it is read.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "handover/message_socket.h"

namespace sluice::handover {

// Of messages and of records (proto/sluice/handover/v1/handover.proto).
inline constexpr uint32_t kFormat = 1;
// A record may have so many bytes: a stored response and its key are below it.
inline constexpr size_t kRecordBytesMax = 256 << 20;
inline constexpr std::string_view kRecordMagic = "SLUICEHO";

// Not thread-safe.
class RecordWriter {
 public:
  // kIo.
  static base::Result<RecordWriter> Open();
  // `record`: a serialized Record. An error is kept for Finish; above kRecordBytesMax: it is left out.
  void Add(std::string_view record);
  // No record may follow. The file, which can only be read from now on. kIo.
  base::Result<Descriptor> Finish();

 private:
  RecordWriter() = default;
  void Flush();

  static constexpr size_t kBufferBytes = 256 << 10;
  Descriptor fd_;
  std::string buffer_;
  base::Status status_ = base::Ok();
};

// Calls `fn` with each record of `bytes`; `fn` says whether it is one. kInvalidArgument names the place.
base::Status ReadRecords(std::string_view bytes, absl::FunctionRef<bool(std::string_view record)> fn);
// The same for a memory file of another process: one that is not sealed is refused.
base::Status ReadRecordFile(const Descriptor& file, absl::FunctionRef<bool(std::string_view record)> fn);

}  // namespace sluice::handover

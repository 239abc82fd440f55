// Records of a handover as messages: written into a memory file, and read from one.
#pragma once

#include <string_view>
#include <utility>

#include "base/error.h"
#include "handover/record_file.h"
#include "sluice/handover/v1/handover.pb.h"

namespace sluice::server {

class RecordsWriter {
 public:
  static base::Result<RecordsWriter> Open() {
    auto records = handover::RecordWriter::Open();
    if (!records) return records.error();
    return RecordsWriter(std::move(*records));
  }
  void Add(const handover::v1::Record& record) { records_.Add(record.SerializeAsString()); }
  base::Result<handover::Descriptor> Finish() { return records_.Finish(); }

 private:
  explicit RecordsWriter(handover::RecordWriter records) : records_(std::move(records)) {}
  handover::RecordWriter records_;
};

// fn(const handover::v1::Record&) for each.
template <typename Fn>
base::Status ReadRecordsOf(const handover::Descriptor& file, Fn fn) {
  handover::v1::Record record;  // its memory is used again
  return handover::ReadRecordFile(file, [&](std::string_view bytes) {
    if (!record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
    fn(std::as_const(record));
    return true;
  });
}

}  // namespace sluice::server

#include "handover/record_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::handover {

using base::ErrorKind;
using base::MakeError;

namespace {

constexpr size_t kHeadBytes = kRecordMagic.size() + sizeof(uint32_t);
constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

base::Error Failed() {
  return MakeError(ErrorKind::kIo, std::string("the memory file of a handover: ") + std::strerror(errno));
}

void AppendVarint(std::string& out, size_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Of at most five bytes: sizes are below 2^35. False: there is none.
bool TakeVarint(std::string_view& bytes, size_t& value) {
  value = 0;
  for (int shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<size_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

// Unmapped with its owner.
struct Mapping {
  Mapping(int fd, size_t n) : size(n) { at = ::mmap(nullptr, n, PROT_READ, MAP_PRIVATE, fd, 0); }
  Mapping(const Mapping&) = delete;
  ~Mapping() {
    if (at != MAP_FAILED) ::munmap(at, size);
  }
  void* at;
  size_t size;
};

}  // namespace

base::Result<RecordWriter> RecordWriter::Open() {
  RecordWriter out;
  out.fd_ = Descriptor(::memfd_create("sluice-handover", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (out.fd_.get() < 0) return Failed();
  out.buffer_ = kRecordMagic;
  for (int shift = 0; shift < 32; shift += 8) out.buffer_ += static_cast<char>(kFormat >> shift & 0xff);
  return out;
}

void RecordWriter::Add(std::string_view record) {
  if (record.size() > kRecordBytesMax) return;
  AppendVarint(buffer_, record.size());
  buffer_ += record;
  if (buffer_.size() >= kBufferBytes) Flush();
}

void RecordWriter::Flush() {
  std::string_view rest = buffer_;
  while (status_.ok() && !rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) status_ = Failed();
    if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

base::Result<Descriptor> RecordWriter::Finish() {
  Flush();
  if (status_.ok() && ::fcntl(fd_.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) status_ = Failed();
  if (!status_.ok()) return status_.error();
  return std::move(fd_);
}

base::Status ReadRecords(std::string_view bytes, absl::FunctionRef<bool(std::string_view record)> fn) {
  const size_t all = bytes.size();
  const auto bad = [&](const char* what) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "records of a handover, byte " + std::to_string(all - bytes.size()) + ": " + what);
  };
  if (bytes.size() < kHeadBytes || !bytes.starts_with(kRecordMagic)) return bad("this is no file of records");
  uint32_t format = 0;
  for (size_t i = 0; i < sizeof(format); ++i)
    format |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[kRecordMagic.size() + i])) << (8 * i);
  if (format != kFormat) {
    return MakeError(ErrorKind::kInvalidArgument, "records of a handover: format " + std::to_string(format) +
                                                      ", this process knows " + std::to_string(kFormat));
  }
  bytes.remove_prefix(kHeadBytes);
  while (!bytes.empty()) {
    size_t size = 0;
    if (!TakeVarint(bytes, size)) return bad("a size does not end");
    if (size > kRecordBytesMax || size > bytes.size()) return bad("a record is longer than what is left");
    if (!fn(bytes.substr(0, size))) return bad("this is no record");
    bytes.remove_prefix(size);
  }
  return base::Ok();
}

base::Status ReadRecordFile(const Descriptor& file, absl::FunctionRef<bool(std::string_view record)> fn) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals)
    return MakeError(ErrorKind::kInvalidArgument, "a handover's descriptor is no sealed memory file");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Failed();
  if (info.st_size == 0) return ReadRecords({}, fn);
  const Mapping mapping(file.get(), static_cast<size_t>(info.st_size));
  if (mapping.at == MAP_FAILED) return Failed();
  return ReadRecords({static_cast<const char*>(mapping.at), mapping.size}, fn);
}

}  // namespace sluice::handover

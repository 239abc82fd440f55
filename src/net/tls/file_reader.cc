#include "net/tls/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::net {
namespace {

bool IsFile(const std::string& name) { return !name.empty() && name != kSystemCa; }

base::Status Read(const std::string& name, TlsFile* out) {
  if (!IsFile(name)) return base::Ok();
  const auto failed = [&](const char* why) {
    return base::MakeError(base::ErrorKind::kIo, std::string(name).append(": cannot be read: ").append(why));
  };
  const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed(std::strerror(errno));
  out->name = name;
  out->text.clear();
  struct stat info {};
  base::Status status = base::Ok();
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) status = failed("not a regular file");
  char buffer[16 * 1024];
  while (status.ok()) {
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = failed(std::strerror(errno));
    if (got <= 0) break;
    out->text.append(buffer, static_cast<size_t>(got));
    if (out->text.size() > kTlsFileBytesMax) status = failed("larger than 16 MiB");
  }
  ::close(fd);
  return status;
}

}  // namespace

FileStamp StampOf(const std::string& file) {
  struct stat info {};
  if (!IsFile(file) || ::stat(file.c_str(), &info) != 0) return {};
  constexpr int64_t kNanos = 1'000'000'000;
  return {true,
          info.st_dev,
          info.st_ino,
          info.st_size,
          info.st_mtim.tv_sec * kNanos + info.st_mtim.tv_nsec,
          info.st_ctim.tv_sec * kNanos + info.st_ctim.tv_nsec};
}

TlsStamps StampsOf(const TlsOptions& options) {
  TlsStamps out = {StampOf(options.certificate), StampOf(options.key), StampOf(options.ca)};
  for (const TlsPairOptions& pair : options.more) {
    out.push_back(StampOf(pair.certificate));
    out.push_back(StampOf(pair.key));
  }
  return out;
}

base::Result<TlsContents> ReadTlsFiles(const TlsOptions& options) {
  TlsContents contents;
  if (auto status = Read(options.certificate, &contents.certificate); !status) return status.error();
  if (auto status = Read(options.key, &contents.key); !status) return status.error();
  if (auto status = Read(options.ca, &contents.ca); !status) return status.error();
  for (const TlsPairOptions& pair : options.more) {
    auto& [certificate, key] = contents.more.emplace_back();
    if (auto status = Read(pair.certificate, &certificate); !status) return status.error();
    if (auto status = Read(pair.key, &key); !status) return status.error();
  }
  return contents;
}

}  // namespace sluice::net

// The files that TlsOptions name, read whole, and a stamp by which one sees that they have changed.
//
// Blocks on the file system: never on a worker. Thread safety: all of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "net/tls/context.h"
#include "net/tls/options.h"

namespace sluice::net {

// Of one file; more is refused. A system's trust bundle has some 200 KiB.
inline constexpr size_t kTlsFileBytesMax = 16 * 1024 * 1024;

// Which file a path leads to, through symbolic links, and its state: writing, replacing by rename and turning a link
// elsewhere all change it.
struct FileStamp {
  bool there = false;
  dev_t device = 0;
  ino_t inode = 0;
  int64_t size = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // since 1970
  bool operator==(const FileStamp&) const = default;
};
FileStamp StampOf(const std::string& file);
// Certificate, key, trust, then each further certificate and key; of those not named: not there.
using TlsStamps = std::vector<FileStamp>;
TlsStamps StampsOf(const TlsOptions& options);

// kIo names the file and says why it cannot be read: not there, no regular file (a pipe would block), too large.
base::Result<TlsContents> ReadTlsFiles(const TlsOptions& options);

}  // namespace sluice::net

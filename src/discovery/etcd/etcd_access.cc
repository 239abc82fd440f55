#include "discovery/etcd/etcd_access.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace sluice::discovery {
namespace {

// An empty path: an empty text.
base::Status Read(const std::string& path, std::string* out) {
  if (path.empty()) return base::Ok();
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (in) {
    out->resize(EtcdAccess::kFileBytesMax + 1);
    in.read(out->data(), static_cast<std::streamsize>(out->size()));
    out->resize(static_cast<size_t>(in.gcount()));
  }
  if (in.bad() || !in.is_open() || (in.fail() && !in.eof()))
    return base::MakeError(base::ErrorKind::kIo, path + ": cannot be read: " + std::strerror(errno));
  if (out->size() > EtcdAccess::kFileBytesMax)
    return base::MakeError(base::ErrorKind::kIo, path + ": has more than 1 MiB");
  return base::Ok();
}

}  // namespace

base::Result<EtcdAccess> EtcdAccess::Open(const EtcdOptions& options, size_t server) {
  RpcTarget target{.address = options.servers[server], .tls = options.tls, .server_name = options.server_name};
  EtcdAccess access;
  access.user = options.user;
  for (const auto& [path, text] :
       {std::pair(&options.ca, &target.ca), std::pair(&options.certificate, &target.certificate),
        std::pair(&options.key, &target.key), std::pair(&options.password_file, &access.password)}) {
    if (base::Status read = Read(*path, text); !read) return read.error();
  }
  while (!access.password.empty() && (access.password.back() == '\n' || access.password.back() == '\r'))
    access.password.pop_back();
  access.channel = std::make_shared<RpcChannel>(target);
  return access;
}

}  // namespace sluice::discovery

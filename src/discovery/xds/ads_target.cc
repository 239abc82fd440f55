#include "discovery/xds/ads_target.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace sluice::discovery {
namespace {

constexpr size_t kPemBytesMax = 1024 * 1024;

base::Status ReadPem(const std::string& path, std::string* out) {
  if (path.empty()) return base::Ok();
  const auto fail = [&](const std::string& why) {
    return base::MakeError(base::ErrorKind::kIo, path + ": cannot be read: " + why);
  };
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(std::strerror(errno));
  out->resize(kPemBytesMax + 1);
  in.read(out->data(), static_cast<std::streamsize>(out->size()));
  if (in.bad() || (in.fail() && !in.eof())) return fail(std::strerror(errno));
  out->resize(static_cast<size_t>(in.gcount()));
  if (out->size() > kPemBytesMax) return fail("more than 1MiB");
  return base::Ok();
}

}  // namespace

base::Result<RpcTarget> LoadTarget(const XdsServerOptions& server) {
  RpcTarget target;
  target.address = server.uri;
  target.tls = server.tls;
  for (const auto& [path, text] :
       {std::pair(&server.ca, &target.ca), std::pair(&server.certificate, &target.certificate),
        std::pair(&server.key, &target.key)}) {
    if (auto status = ReadPem(*path, text); !status.ok()) return status.error();
  }
  return target;
}

}  // namespace sluice::discovery

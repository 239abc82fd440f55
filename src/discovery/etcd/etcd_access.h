// EtcdAccess: what it takes to speak to a server of etcd: files are read and a channel is made for each connection, so
// that certificates and passwords that were replaced are used.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/error.h"
#include "discovery/options.h"
#include "discovery/rpc/rpc_channel.h"

namespace sluice::discovery {

struct EtcdAccess {
  // Of one file.
  static constexpr size_t kFileBytesMax = 1024 * 1024;

  std::shared_ptr<RpcChannel> channel;
  std::string user, password;

  // To the server with this number. The error names the file that cannot be read. Blocks; any thread but a worker's.
  static base::Result<EtcdAccess> Open(const EtcdOptions& options, size_t server);
};

}  // namespace sluice::discovery

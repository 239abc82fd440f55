// GrpcCredentials: the admin RPC's certificate, key and trust for clients, as gRPC's handshakes take them.
//
// Each handshake asks for the newest ones; open connections keep theirs. server::TlsReloader reads the files and checks
// them; gRPC's own file watcher would drop the former ones for files that are bad, and refuse every client.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "net/tls/context.h"

namespace grpc {
class ServerCredentials;
}

namespace sluice::admin {

class GrpcCredentials {
 public:
  // What gRPC itself would use otherwise than net::TlsContext does. kInvalidArgument: names the file and the reason.
  static base::Status Check(const net::TlsContents& contents);

  // `contents`: all three files, good for net::TlsContext::ForListener and for Check; in Put too.
  explicit GrpcCredentials(net::TlsContents contents);
  ~GrpcCredentials();

  // For handshakes that begin from now on.
  void Put(net::TlsContents contents);
  // For one server, which must not outlive this.
  std::shared_ptr<grpc::ServerCredentials> ForServer();

 private:
  class Fetcher;

  std::mutex mutex_;
  // Under mutex_:
  net::TlsContents contents_;
  uint64_t version_ = 1;     // of contents_
  uint64_t handed_out_ = 0;  // the version that the server has
};

}  // namespace sluice::admin

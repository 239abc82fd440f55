// TlsFiles: the admin RPC's certificate, key and trust for clients, kept as gRPC's handshakes take them and read again
// when the files change.
//
// Each handshake asks for what is newest; connections that are up keep theirs. New files are taken only when they are
// good as a whole (they parse, the key belongs to the certificate); else the former stay and the log says why, once.
// gRPC's file watcher would drop the former ones and refuse everybody. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "admin/backend.h"
#include "base/error.h"
#include "net/tls_pem.h"

namespace grpc {
class ServerCredentials;
}

namespace sluice::admin {

// Names of PEM files.
struct TlsPaths {
  std::string certificate;  // ours, then the intermediate ones
  std::string key;          // not encrypted
  std::string client_ca;    // a client without a certificate of one of these gets no connection
  bool operator==(const TlsPaths&) const = default;
};

class TlsFiles {
 public:
  static constexpr size_t kFileBytesMax = 1 << 20;  // of each file; a system's whole trust bundle is a quarter of it
  static constexpr std::chrono::milliseconds kPeriod{1000};  // how often the files are read again

  // kIo, kInvalidArgument: names the file and what is wrong with it.
  static base::Result<std::unique_ptr<TlsFiles>> Open(TlsPaths paths);
  ~TlsFiles();

  // Reads the files again and takes them if they are good. Blocks for as long as the file system does.
  void Refresh();
  // What handshakes get: our certificate, then those trusted. `error`: why the files as they are now are not it.
  std::vector<CertificateView> List() const;
  // For one server, which must not outlive this.
  std::shared_ptr<grpc::ServerCredentials> Credentials();

 private:
  struct Pem {
    std::string certificate, key, client_ca;
    bool operator==(const Pem&) const = default;
  };
  class Fetcher;

  explicit TlsFiles(TlsPaths paths) : paths_(std::move(paths)) {}
  base::Result<Pem> Read() const;
  // What is in them, for List.
  struct Shown {
    net::CertificateInfo own;
    std::vector<net::CertificateInfo> trusted;
  };
  base::Result<Shown> Check(const Pem& pem) const;
  void Complain(const std::string& problem);  // once for each

  const TlsPaths paths_;
  std::mutex refresh_mutex_;  // held while files are read; handshakes do not wait for it
  Pem seen_;                  // under refresh_mutex_: the files when they were last read
  bool read_ = true;          // same: the last try to read them went well
  mutable std::mutex mutex_;
  std::string problem_;      // under mutex_: with the files as they are; empty: none
  Pem pem_;                  // same: what handshakes get
  Shown shown_;              // same: of pem_
  uint64_t version_ = 1;     // same: of pem_
  uint64_t handed_out_ = 0;  // same: the version that the server has
};

}  // namespace sluice::admin

// JwtFiles: the providers of JWTs and their key files: read at the start, at each reload and when they change.
//
// A file that cannot be read, or is no JWK Set, changes nothing: at the start and at a reload it is that one's error,
// later a line in the log, and the former keys stay.
//
// Thread safety: all of it; Prepare and Commit on one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "metrics/registry.h"
#include "net/tls/file_reader.h"
#include "proxy/identity/jwt_provider.h"
#include "proxy/options.h"

namespace sluice::server {

class JwtFiles {
  struct Entry {
    std::shared_ptr<proxy::JwtProvider> provider;
    net::FileStamp read;  // of what was read last
    net::FileStamp seen;  // of the last look
    bool failed = false;
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Loaded {
    net::FileStamp stamp;
    std::shared_ptr<const proxy::KeySet> keys;
  };

 public:
  // What Prepare has read, until Commit.
  class Plan {
   public:
    // Null: there is none of that name.
    std::shared_ptr<const proxy::JwtProvider> Of(const std::string& name) const;

   private:
    friend class JwtFiles;
    std::vector<EntryPtr> entries_;
    std::vector<std::pair<EntryPtr, Loaded>> again_;  // providers in force whose files have changed
  };

  JwtFiles(metrics::Registry& registry, uint32_t workers, proxy::WallClock wall);

  // Providers with these options, the former ones where they are the same. Blocks on the files. The error names the
  // provider, the file and the reason. Nothing in force changes.
  base::Result<Plan> Prepare(const std::vector<proxy::JwtProviderOptions>& wanted);
  // From now on the plan's files are those that are watched, and what was read again is in force.
  void Commit(Plan plan);
  // Once a second: looks at the files. A change is read when two looks have seen the same.
  void Poll();

 private:
  static base::Result<Loaded> Load(const proxy::JwtProviderOptions& options);
  void PutInForce(Entry& entry, Loaded loaded);
  std::vector<metrics::Sample> CountKeys();

  metrics::Registry& registry_;
  const uint32_t workers_;
  const proxy::WallClock wall_;
  metrics::Counter* loads_ok_;
  metrics::Counter* loads_failed_;
  std::mutex mutex_;
  std::vector<EntryPtr> entries_;  // under mutex_: in force
};

}  // namespace sluice::server

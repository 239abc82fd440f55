// TlsReloader: reads the TLS files of all listeners, of all clusters and of the admin RPC: at the start, at each reload
// of the configuration (those of the admin RPC need a restart to get other names), and again when they have changed.
//
// Poll looks at the files by path about once a second, so it does not matter how they change: written in place, renamed
// over, or reached through a symbolic link that is turned (as Kubernetes does). A change is read when two looks in a
// row see the same: files that are being written are left alone until both looks agree. Files that cannot be used
// change nothing; the reason is logged and counted once, and stands in List until they are mended.
//
// Thread safety: all of it, but not on a worker: it blocks on the file system.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "admin/backend.h"
#include "admin/grpc_credentials.h"
#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "net/tls/current_context.h"
#include "net/tls/file_reader.h"

namespace sluice::server {

class TlsReloader {
 private:
  // The TLS of one listener or cluster, or of the admin RPC. Its options never change: other options are another entry,
  // with another slot.
  using TlsChoice = std::variant<net::ListenerTlsOptions, net::ClusterTlsOptions>;
  struct Entry {
    // `side`: "listener", "cluster", "admin", which has no name.
    Entry(std::string_view side, const std::string& name, TlsChoice tls_options);

    std::string label;    // in log lines and errors: "listener in"
    std::string used_by;  // in views: "listener/in"
    const TlsChoice tls;
    bool for_grpc = false;                        // the admin RPC's
    std::shared_ptr<net::TlsTicketKeys> tickets;  // of a listener; they outlive changes of options and files
    // Where handshakes find the files in force; one of the two, by for_grpc:
    std::shared_ptr<net::CurrentTlsContext> slot;
    std::shared_ptr<admin::GrpcCredentials> credentials;
    // Under mutex_ once the entry is in force:
    std::shared_ptr<const net::TlsContext> context;
    net::TlsStamps read{};  // the files when they were read last, well or not
    net::TlsStamps seen{};  // and when they were looked at last
    std::string error;      // of the last reading; empty: `context` is what the files have

    const net::TlsOptions& options() const;
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Loaded {
    std::shared_ptr<const net::TlsContext> context;
    net::TlsContents contents;
    net::TlsStamps stamps;
  };

 public:
  // What Prepare has read, until Commit.
  class Plan {
    friend class TlsReloader;
    std::vector<EntryPtr> entries;
    std::vector<std::pair<EntryPtr, Loaded>> again;  // entries in force with changed files
  };

  explicit TlsReloader(metrics::Registry& registry);

  // Reads what `config` names and gives its listeners and clusters their slots: the former ones where the TLS options
  // are the same. The error names the user, the file and the reason. Nothing in force changes.
  base::Result<Plan> Prepare(config::Config& config);
  // From now on the plan's files are those that are watched, and what was read again is in force.
  void Commit(Plan plan);

  // Reads the admin RPC's files and watches them from now on. At most once. The error is as Prepare's.
  base::Result<std::shared_ptr<admin::GrpcCredentials>> AddAdmin(const config::AdminTlsOptions& options);

  // Once a second, with a steady clock's time: looks at the files, and rotates ticket keys that are due.
  void Poll(base::TimePoint now);

  // Own certificates in use that have expired, a line for each: at the start there is no better one, so they are used.
  // A pair that has expired never takes the place of one that has not.
  std::vector<std::string> Expired() const;
  // Those in use that will have within 14 days, by their file.
  struct Ending {
    std::string file, text;
  };
  std::vector<Ending> EndingSoon() const;

  // Certificates in use, own and trusted ones: in the order of the configuration, then the admin RPC's.
  std::vector<admin::CertificateView> List() const;

 private:
  base::Status Add(std::string_view side, const std::string& name, TlsChoice tls, Plan& plan,
                   std::shared_ptr<net::CurrentTlsContext>* slot);
  static base::Result<Loaded> Load(const Entry& entry);
  static base::Result<Loaded> LoadAgain(const Entry& entry, const net::TlsContext& in_force);
  static base::Error Named(const Entry& entry, const base::Error& error);
  static void PutInForce(Entry& entry, Loaded loaded);
  void PollEntry(Entry& entry, base::TimePoint now);

  metrics::Registry& registry_;
  metrics::Counter* loads_ok_;
  metrics::Counter* loads_failed_;
  mutable std::mutex mutex_;
  // Under mutex_: in force.
  std::vector<EntryPtr> entries_;
  EntryPtr admin_;  // null: the admin RPC has no TLS
};

}  // namespace sluice::server

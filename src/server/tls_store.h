// TlsStore: the TLS files of all listeners and clusters: read at the start and at each reload, and again when they have
// changed; each user's context stands in its TlsSlot.
//
// Files are looked at by path about once a second (Poll), so it does not matter how they change: written in place,
// renamed over, or reached through a symbolic link that is turned (as Kubernetes does). A change is read when two looks
// in a row see the same: a file half written, or a certificate whose key is still to come, is left alone until then.
// What cannot be used changes nothing, is logged and counted once, and stands in List until it is mended.
//
// Thread safety: all of it, but from no worker: it blocks on the file system.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "admin/backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "net/tls_files.h"
#include "net/tls_slot.h"

namespace sluice::server {

class TlsStore {
 private:
  // One listener's or cluster's TLS. Its options never change: other options are another entry, with another slot.
  struct Entry {
    bool is_listener = false;
    std::string name;
    net::ListenerTlsOptions listener;  // one of the two
    net::ClusterTlsOptions cluster;
    std::shared_ptr<net::TlsSlot> slot;
    std::shared_ptr<net::TlsTicketKeys> tickets;  // of a listener; they outlive changes of options and files
    // Under mutex_ once the entry is in force:
    net::TlsStamps read{};  // the files when they were read last, well or not
    net::TlsStamps seen{};  // and when they were looked at last
    std::string error;      // of the last reading; empty: what is in force is what the files have

    const net::TlsOptions& options() const;
    std::string label() const { return (is_listener ? "listener " : "cluster ") + name; }
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Loaded {
    std::shared_ptr<const net::TlsContext> context;
    net::TlsStamps stamps;
  };

 public:
  // What Prepare has read, until Commit.
  class Plan {
    friend class TlsStore;
    std::vector<EntryPtr> entries;
    std::vector<std::pair<EntryPtr, Loaded>> again;  // entries in force whose files are other ones now
  };

  explicit TlsStore(metrics::Registry& registry);

  // Reads what `config` names and gives its listeners and clusters their slots: the former ones where the TLS options
  // are the same. The error names the user, the file and the reason. Nothing in force changes.
  base::Result<Plan> Prepare(config::Config& config);
  // From now on the plan's files are those that are watched, and what was read again is in force.
  void Commit(Plan plan);

  // Once a second, with a steady clock's time: files, and ticket keys whose time is over.
  void Poll(base::TimePoint now);

  // What is in use: own certificates and trusted ones, in the order of the configuration; then what SetOthers lists.
  std::vector<admin::CertificateView> List() const;
  // Certificates that others keep (the admin RPC's); null: none. `others` is called with a lock held, and never again
  // once this has returned for the next one.
  using Lister = std::function<std::vector<admin::CertificateView>()>;
  void SetOthers(Lister others);

 private:
  EntryPtr Find(bool is_listener, const std::string& name) const;  // under mutex_
  base::Status Add(EntryPtr entry, Plan& plan, std::shared_ptr<net::TlsSlot>* slot);
  static base::Result<Loaded> Load(const Entry& entry);
  void Reread(Entry& entry);

  metrics::Registry& registry_;
  metrics::Counter* loads_ok_;
  metrics::Counter* loads_failed_;
  mutable std::mutex mutex_;
  std::vector<EntryPtr> entries_;  // under mutex_: in force
  Lister others_;                  // under mutex_
};

}  // namespace sluice::server

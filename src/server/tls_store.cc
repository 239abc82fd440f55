#include "server/tls_store.h"

#include <algorithm>

#include "admin/certificate_view.h"
#include "base/log.h"

namespace sluice::server {
const net::TlsOptions& TlsStore::Entry::options() const {
  if (is_listener) return listener;
  return cluster;
}

TlsStore::TlsStore(metrics::Registry& registry) : registry_(registry) {
  constexpr char kLoads[] = "sluice_tls_file_loads_total";
  constexpr char kHelp[] = "Times that changed TLS files were read, by result; failed: the former ones stay in force.";
  loads_ok_ = registry.AddCounter(kLoads, kHelp, {{"result", "ok"}});
  loads_failed_ = registry.AddCounter(kLoads, kHelp, {{"result", "failed"}});
  registry.AddCallback(
      "sluice_tls_certificate_not_after_seconds",
      "When the certificate in use ends, in seconds since 1970; of a trusted file, the one that ends first.", "gauge",
      [this] {
        std::vector<metrics::Sample> out;
        for (const admin::CertificateView& view : List()) {
          if (view.subject.empty()) continue;  // the system's
          metrics::Labels labels = {{"used_by", view.used_by}, {"purpose", view.purpose}, {"file", view.file}};
          const auto value = static_cast<double>(view.not_after);
          if (!out.empty() && out.back().labels == labels)
            out.back().value = std::min(out.back().value, value);
          else
            out.push_back({std::move(labels), value});
        }
        return out;
      });
}

TlsStore::EntryPtr TlsStore::Find(bool is_listener, const std::string& name) const {
  for (const EntryPtr& entry : entries_) {
    if (entry->is_listener == is_listener && entry->name == name) return entry;
  }
  return nullptr;
}

base::Result<TlsStore::Loaded> TlsStore::Load(const Entry& entry) {
  Loaded loaded;
  loaded.stamps = net::StampsOf(entry.options());  // first: what changes from here on is seen at the next look
  auto contents = net::ReadTlsFiles(entry.options());
  if (!contents) return contents.error();
  auto context = entry.is_listener ? net::TlsContext::ForListener(entry.listener, *contents, entry.tickets)
                                   : net::TlsContext::ForCluster(entry.cluster, *contents);
  if (!context) return context.error();
  loaded.context = std::move(*context);
  return loaded;
}

base::Status TlsStore::Add(EntryPtr entry, Plan& plan, std::shared_ptr<net::TlsSlot>* slot) {
  EntryPtr former;
  bool current = false;
  {
    std::lock_guard lock(mutex_);
    former = Find(entry->is_listener, entry->name);
    const bool same = former != nullptr && former->listener == entry->listener && former->cluster == entry->cluster;
    if (former != nullptr) entry->tickets = former->tickets;
    if (same) entry = former;
    current = same && entry->error.empty() && entry->read == net::StampsOf(entry->options());
  }
  if (!current) {
    if (entry->tickets == nullptr) entry->tickets = std::make_shared<net::TlsTicketKeys>();
    auto loaded = Load(*entry);
    if (!loaded) return base::MakeError(loaded.error().kind, entry->label() + ": TLS: " + loaded.error().detail);
    if (entry == former) {
      plan.again.emplace_back(entry, std::move(*loaded));
    } else {
      entry->slot = std::make_shared<net::TlsSlot>(registry_, entry->is_listener ? "listener" : "cluster", entry->name);
      entry->slot->Put(loaded->context);
      entry->read = entry->seen = loaded->stamps;
    }
  }
  *slot = entry->slot;
  plan.entries.push_back(std::move(entry));
  return base::Ok();
}

base::Result<TlsStore::Plan> TlsStore::Prepare(config::Config& config) {
  Plan plan;
  for (proxy::ListenerOptions& listener : config.listeners) {
    if (!listener.tls.enabled) continue;
    auto entry = std::make_shared<Entry>();
    entry->is_listener = true;
    entry->name = listener.name;
    entry->listener = listener.tls;
    if (auto status = Add(std::move(entry), plan, &listener.tls_slot); !status) return status.error();
  }
  for (upstream::ClusterOptions& cluster : config.clusters) {
    if (!cluster.tls.enabled) continue;
    auto entry = std::make_shared<Entry>();
    entry->name = cluster.name;
    entry->cluster = cluster.tls;
    if (auto status = Add(std::move(entry), plan, &cluster.tls_slot); !status) return status.error();
  }
  return plan;
}

void TlsStore::Commit(Plan plan) {
  std::lock_guard lock(mutex_);
  for (auto& [entry, loaded] : plan.again) {
    entry->slot->Put(std::move(loaded.context));
    entry->read = entry->seen = loaded.stamps;
    entry->error.clear();
    loads_ok_->Add(registry_.shared_slot());
  }
  entries_ = std::move(plan.entries);
}

void TlsStore::SetOthers(Lister others) {
  std::lock_guard lock(mutex_);
  others_ = std::move(others);
}

void TlsStore::Reread(Entry& entry) {
  auto loaded = Load(entry);
  if (loaded) {
    entry.slot->Put(loaded->context);
    entry.read = loaded->stamps;
    entry.error.clear();
    loads_ok_->Add(registry_.shared_slot());
    SLUICE_LOG_INFO("{}: new TLS files are in force", entry.label());
    return;
  }
  entry.read = entry.seen;  // not again until they change again
  entry.error = loaded.error().detail;
  loads_failed_->Add(registry_.shared_slot());
  SLUICE_LOG_ERROR("{}: new TLS files cannot be used, the former ones stay in force: {}", entry.label(), entry.error);
}

void TlsStore::Poll(base::TimePoint now) {
  std::lock_guard lock(mutex_);
  for (const EntryPtr& entry : entries_) {
    if (entry->tickets != nullptr) entry->tickets->RotateIfDue(now);
    const net::TlsStamps stamps = net::StampsOf(entry->options());
    const bool settled = stamps == entry->seen;
    entry->seen = stamps;
    if (settled && stamps != entry->read) Reread(*entry);
  }
}

std::vector<admin::CertificateView> TlsStore::List() const {
  std::vector<admin::CertificateView> out;
  const int64_t now = admin::WallSeconds();
  std::lock_guard lock(mutex_);
  for (const EntryPtr& entry : entries_) {
    const auto context = entry->slot->context();
    const net::TlsOptions& options = entry->options();
    const size_t first = out.size();
    if (!options.certificate.empty())
      out.push_back(admin::ViewOf(context->certificate(), options.certificate, "own", now));
    for (const auto& trusted : context->trusted()) out.push_back(admin::ViewOf(trusted, options.ca, "trusted", now));
    if (options.ca == net::kSystemCa) {
      out.emplace_back();
      out.back().purpose = "trusted";
      out.back().file = options.ca;
    }
    for (size_t i = first; i < out.size(); ++i) {
      out[i].used_by = (entry->is_listener ? "listener/" : "cluster/") + entry->name;
      out[i].error = entry->error;
    }
  }
  if (others_) std::ranges::move(others_(), std::back_inserter(out));
  return out;
}

}  // namespace sluice::server

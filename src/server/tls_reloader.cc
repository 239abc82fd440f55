#include "server/tls_reloader.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "server/certificate_view.h"

namespace sluice::server {

TlsReloader::Entry::Entry(std::string_view side, const std::string& name, TlsChoice tls_options)
    : label(side), used_by(side), tls(std::move(tls_options)) {
  if (name.empty()) return;
  label.append(" ").append(name);
  used_by.append("/").append(name);
}

const net::TlsOptions& TlsReloader::Entry::options() const {
  return std::visit([](const auto& tls) -> const net::TlsOptions& { return tls; }, tls);
}

TlsReloader::TlsReloader(metrics::Registry& registry) : registry_(registry) {
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
          metrics::Labels labels = {{"used_by", view.used_by},
                                    {"purpose", view.purpose == admin::CertificatePurpose::kOwn ? "own" : "trusted"},
                                    {"file", view.file}};
          const auto value = static_cast<double>(view.not_after);
          if (!out.empty() && out.back().labels == labels)
            out.back().value = std::min(out.back().value, value);
          else
            out.push_back({std::move(labels), value});
        }
        return out;
      });
}

base::Result<TlsReloader::Loaded> TlsReloader::Load(const Entry& entry) {
  Loaded loaded;
  loaded.stamps = net::StampsOf(entry.options());  // first: what changes from here on is seen at the next look
  auto contents = net::ReadTlsFiles(entry.options());
  if (!contents) return contents.error();
  if (entry.for_grpc) {
    if (auto status = admin::GrpcCredentials::Check(*contents); !status) return status.error();
  }
  const auto* listener = std::get_if<net::ListenerTlsOptions>(&entry.tls);
  auto context = listener != nullptr
                     ? net::TlsContext::ForListener(*listener, *contents, entry.tickets)
                     : net::TlsContext::ForCluster(std::get<net::ClusterTlsOptions>(entry.tls), *contents);
  if (!context) return context.error();
  loaded.context = std::move(*context);
  loaded.contents = std::move(*contents);
  return loaded;
}

base::Result<TlsReloader::Loaded> TlsReloader::LoadAgain(const Entry& entry, const net::TlsContext& in_force) {
  auto loaded = Load(entry);
  if (!loaded) return loaded;
  const int64_t now = WallSeconds();
  // The options are the same, and so is the number of certificates.
  for (size_t i = 0; i < loaded->context->own().size(); ++i) {
    const net::CertificateInfo& fresh = loaded->context->own()[i].info;
    if (!HasExpired(fresh, now) || HasExpired(in_force.own()[i].info, now)) continue;
    return base::MakeError(base::ErrorKind::kInvalidArgument, ExpiredText(CertificateFile(entry.options(), i), fresh));
  }
  return loaded;
}

base::Error TlsReloader::Named(const Entry& entry, const base::Error& error) {
  return base::MakeError(error.kind, entry.label + ": TLS: " + error.detail);
}

void TlsReloader::PutInForce(Entry& entry, Loaded loaded) {
  entry.context = loaded.context;
  entry.read = loaded.stamps;
  entry.error.clear();
  if (entry.slot != nullptr) entry.slot->Put(std::move(loaded.context));
  if (entry.credentials != nullptr) entry.credentials->Put(std::move(loaded.contents));
}

base::Status TlsReloader::Add(std::string_view side, const std::string& name, TlsChoice tls, Plan& plan,
                              std::shared_ptr<net::CurrentTlsContext>* slot) {
  auto entry = std::make_shared<Entry>(side, name, std::move(tls));
  EntryPtr former;
  std::shared_ptr<const net::TlsContext> in_force;
  bool same = false, current = false;
  {
    std::lock_guard lock(mutex_);
    auto it = std::ranges::find(entries_, entry->used_by, [](const EntryPtr& other) { return other->used_by; });
    if (it != entries_.end()) {
      former = *it;
      in_force = former->context;
      same = former->tls == entry->tls;
      current = same && former->error.empty() && former->read == net::StampsOf(former->options());
      entry->tickets = former->tickets;
    }
  }
  if (same) entry = former;
  if (entry->tickets == nullptr) entry->tickets = std::make_shared<net::TlsTicketKeys>();
  if (!current) {
    auto loaded = same ? LoadAgain(*entry, *in_force) : Load(*entry);
    if (!loaded) return Named(*entry, loaded.error());
    if (same) {
      plan.again.emplace_back(entry, std::move(*loaded));
    } else {
      entry->slot = std::make_shared<net::CurrentTlsContext>(registry_, side, name);
      entry->seen = loaded->stamps;
      PutInForce(*entry, std::move(*loaded));
    }
  }
  *slot = entry->slot;
  plan.entries.push_back(std::move(entry));
  return base::Ok();
}

base::Result<TlsReloader::Plan> TlsReloader::Prepare(config::Config& config) {
  Plan plan;
  for (proxy::ListenerOptions& listener : config.listeners) {
    if (!listener.tls.enabled) continue;
    if (auto status = Add("listener", listener.name, listener.tls, plan, &listener.tls_slot); !status)
      return status.error();
  }
  for (upstream::ClusterOptions& cluster : config.clusters) {
    if (!cluster.tls.enabled) continue;
    if (auto status = Add("cluster", cluster.name, cluster.tls, plan, &cluster.tls_slot); !status)
      return status.error();
  }
  return plan;
}

void TlsReloader::Commit(Plan plan) {
  std::lock_guard lock(mutex_);
  for (auto& [entry, loaded] : plan.again) {
    entry->seen = loaded.stamps;
    PutInForce(*entry, std::move(loaded));
    loads_ok_->Add(registry_.shared_slot());
  }
  entries_ = std::move(plan.entries);
}

base::Result<std::shared_ptr<admin::GrpcCredentials>> TlsReloader::AddAdmin(const config::AdminTlsOptions& options) {
  net::ListenerTlsOptions tls;
  tls.certificate = options.certificate;
  tls.key = options.key;
  tls.ca = options.client_ca;
  auto entry = std::make_shared<Entry>("admin", "", std::move(tls));
  entry->for_grpc = true;
  auto loaded = Load(*entry);
  if (!loaded) return Named(*entry, loaded.error());
  entry->credentials = std::make_shared<admin::GrpcCredentials>(loaded->contents);
  entry->seen = loaded->stamps;
  PutInForce(*entry, std::move(*loaded));
  std::lock_guard lock(mutex_);
  SLUICE_CHECK(admin_ == nullptr);
  admin_ = entry;
  return entry->credentials;
}

void TlsReloader::PollEntry(Entry& entry, base::TimePoint now) {
  if (entry.tickets != nullptr) entry.tickets->RotateIfDue(now);
  const net::TlsStamps stamps = net::StampsOf(entry.options());
  const bool settled = stamps == entry.seen;
  entry.seen = stamps;
  if (!settled || stamps == entry.read) return;
  auto loaded = LoadAgain(entry, *entry.context);
  if (loaded) {
    PutInForce(entry, std::move(*loaded));
    loads_ok_->Add(registry_.shared_slot());
    SLUICE_LOG_INFO("{}: new TLS files are in force", entry.label);
    return;
  }
  entry.read = entry.seen;  // not again until they change again
  entry.error = loaded.error().detail;
  loads_failed_->Add(registry_.shared_slot());
  SLUICE_LOG_ERROR("{}: new TLS files cannot be used, the former ones stay in force: {}", entry.label, entry.error);
}

void TlsReloader::Poll(base::TimePoint now) {
  std::lock_guard lock(mutex_);
  for (const EntryPtr& entry : entries_) PollEntry(*entry, now);
  if (admin_ != nullptr) PollEntry(*admin_, now);
}

std::vector<std::string> TlsReloader::Expired() const {
  std::vector<std::string> out;
  const int64_t now = WallSeconds();
  const auto look = [&](const Entry& entry) {
    for (size_t i = 0; i < entry.context->own().size(); ++i) {
      const net::CertificateInfo& info = entry.context->own()[i].info;
      if (HasExpired(info, now))
        out.push_back(entry.label + ": TLS: " + ExpiredText(CertificateFile(entry.options(), i), info));
    }
  };
  std::lock_guard lock(mutex_);
  for (const EntryPtr& entry : entries_) look(*entry);
  if (admin_ != nullptr) look(*admin_);
  return out;
}

std::vector<TlsReloader::Ending> TlsReloader::EndingSoon() const {
  std::vector<Ending> out;
  const int64_t now = WallSeconds();
  const auto look = [&](const Entry& entry) {
    for (size_t i = 0; i < entry.context->own().size(); ++i) {
      const net::CertificateInfo& info = entry.context->own()[i].info;
      const std::string& file = CertificateFile(entry.options(), i);
      if (EndsSoon(info, now)) out.push_back({file, EndsSoonText(file, info, now)});
    }
  };
  std::lock_guard lock(mutex_);
  for (const EntryPtr& entry : entries_) look(*entry);
  if (admin_ != nullptr) look(*admin_);
  return out;
}

std::vector<admin::CertificateView> TlsReloader::List() const {
  std::vector<admin::CertificateView> out;
  const auto append = [&out](const Entry& entry) {
    AppendViews(*entry.context, entry.options(), entry.used_by, entry.error, &out);
  };
  std::lock_guard lock(mutex_);
  for (const EntryPtr& entry : entries_) append(*entry);
  if (admin_ != nullptr) append(*admin_);
  return out;
}

}  // namespace sluice::server

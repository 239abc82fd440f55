#include "server/jwt_files.h"

#include <algorithm>

#include "base/log.h"
#include "config/file_text.h"

namespace sluice::server {
namespace {

constexpr char kKeys[] = "sluice_jwt_keys";
constexpr char kLoads[] = "sluice_jwt_key_file_loads_total";

}  // namespace

std::shared_ptr<const proxy::JwtProvider> JwtFiles::Plan::Of(const std::string& name) const {
  for (const EntryPtr& entry : entries_) {
    if (entry->provider->options().name == name) return entry->provider;
  }
  return nullptr;
}

JwtFiles::JwtFiles(metrics::Registry& registry, uint32_t workers, proxy::WallClock wall)
    : registry_(registry), workers_(workers), wall_(std::move(wall)) {
  constexpr char kHelp[] = "Times that a changed key file of JWTs was read; failed: the former keys stay in force.";
  loads_ok_ = registry.AddCounter(kLoads, kHelp, {{"result", "ok"}}, metrics::Show::kTouched);
  loads_failed_ = registry.AddCounter(kLoads, kHelp, {{"result", "failed"}}, metrics::Show::kTouched);
  registry.AddCallback(kKeys, "Keys of JWT providers in force, by whether they can be used.", "gauge",
                       [this] { return CountKeys(); });
}

std::vector<metrics::Sample> JwtFiles::CountKeys() {
  std::vector<metrics::Sample> out;
  std::lock_guard lock(mutex_);
  for (const EntryPtr& entry : entries_) {
    const std::string& name = entry->provider->options().name;
    const auto keys = entry->provider->keys();
    out.push_back({{{"provider", name}, {"state", "usable"}}, static_cast<double>(keys->size())});
    out.push_back({{{"provider", name}, {"state", "skipped"}}, static_cast<double>(keys->skipped())});
  }
  return out;
}

base::Result<JwtFiles::Loaded> JwtFiles::Load(const proxy::JwtProviderOptions& options) {
  const std::string label = "jwt " + options.name + ": ";
  Loaded loaded;
  loaded.stamp = net::StampOf(options.jwks_file);  // first: what changes from here on is seen at the next look
  auto text = config::ReadNamedText(options.jwks_file);
  if (!text) return base::MakeError(text.error().kind, label + text.error().detail);
  auto keys = proxy::KeySet::Parse(*text);
  if (!keys) return base::MakeError(keys.error().kind, label + options.jwks_file + ": " + keys.error().detail);
  loaded.keys = std::move(*keys);
  if (loaded.keys->size() == 0)
    SLUICE_LOG_WARN("jwt {}: {}: has no key that can be used: each token is refused", options.name, options.jwks_file);
  else if (loaded.keys->skipped() > 0)
    SLUICE_LOG_WARN("jwt {}: {}: {} keys cannot be used and are skipped", options.name, options.jwks_file,
                    loaded.keys->skipped());
  if (loaded.keys->untried() > 0)
    SLUICE_LOG_WARN(
        "jwt {}: {}: {} keys are beyond the first {} of their algorithm: tokens without kid are not tried with "
        "them",
        options.name, options.jwks_file, loaded.keys->untried(), proxy::kJwksTriedMax);
  return loaded;
}

base::Result<JwtFiles::Plan> JwtFiles::Prepare(const std::vector<proxy::JwtProviderOptions>& wanted) {
  Plan plan;
  for (const proxy::JwtProviderOptions& options : wanted) {
    EntryPtr entry;
    bool current = false;
    {
      std::lock_guard lock(mutex_);
      const auto it = std::ranges::find_if(
          entries_, [&](const EntryPtr& former) { return former->provider->options() == options; });
      if (it != entries_.end()) {
        entry = *it;
        current = !entry->failed && entry->read == net::StampOf(options.jwks_file);
      }
    }
    if (!current) {
      auto loaded = Load(options);
      if (!loaded) return loaded.error();
      if (entry != nullptr) {
        plan.again_.emplace_back(entry, std::move(*loaded));
      } else {
        entry = std::make_shared<Entry>();
        entry->read = entry->seen = loaded->stamp;
        entry->provider =
            std::make_shared<proxy::JwtProvider>(options, std::move(loaded->keys), wall_, workers_, registry_);
      }
    }
    plan.entries_.push_back(std::move(entry));
  }
  return plan;
}

void JwtFiles::PutInForce(Entry& entry, Loaded loaded) {
  entry.read = loaded.stamp;
  entry.failed = false;
  entry.provider->PutKeys(std::move(loaded.keys));
  loads_ok_->Add(registry_.shared_slot());
}

void JwtFiles::Commit(Plan plan) {
  std::lock_guard lock(mutex_);
  for (auto& [entry, loaded] : plan.again_) {
    entry->seen = loaded.stamp;
    PutInForce(*entry, std::move(loaded));
  }
  entries_ = std::move(plan.entries_);
}

void JwtFiles::Poll() {
  std::lock_guard lock(mutex_);
  for (const EntryPtr& entry : entries_) {
    const proxy::JwtProviderOptions& options = entry->provider->options();
    const net::FileStamp stamp = net::StampOf(options.jwks_file);
    const bool settled = stamp == entry->seen;
    entry->seen = stamp;
    if (!settled || stamp == entry->read) continue;
    auto loaded = Load(options);
    if (loaded) {
      SLUICE_LOG_INFO("jwt {}: the new keys of {} are in force", options.name, options.jwks_file);
      PutInForce(*entry, std::move(*loaded));
      continue;
    }
    entry->read = stamp;  // not again until it changes again
    entry->failed = true;
    loads_failed_->Add(registry_.shared_slot());
    SLUICE_LOG_ERROR("{}; the former keys stay in force", loaded.error().detail);
  }
}

}  // namespace sluice::server

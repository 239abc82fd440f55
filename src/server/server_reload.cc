// The server's reload: a whole new configuration in place of the one that runs, or none of it.
#include <filesystem>

#include "admin/admin_server.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/changes.h"
#include "config/check_files.h"
#include "config/dump.h"
#include "proxy/option_table.h"
#include "server/log_setup.h"
#include "server/server.h"

namespace sluice::server {

admin::ReloadResult Server::Reload() {
  std::lock_guard lock(reload_mutex_);
  std::vector<std::string> changes;
  if (!leaving_) options_.supervisor->Reloading(base::Clock::Steady().Now());
  admin::ReloadResult result = ReloadLocked(&changes);
  if (!leaving_) options_.supervisor->Ready();
  std::lock_guard note_lock(last_reload_mutex_);
  last_reload_ = LastReload{base::Clock::Steady().Now(), result, std::move(changes)};
  return result;
}

std::optional<admin::ReloadView> Server::DescribeReload() {
  std::lock_guard lock(last_reload_mutex_);
  if (!last_reload_) return std::nullopt;
  return admin::ReloadView{base::Clock::Steady().Now() - last_reload_->at, last_reload_->result, last_reload_->changes};
}

admin::ReloadResult Server::ReloadLocked(std::vector<std::string>* changes) {
  admin::ReloadResult result;
  auto failed = [&](std::string error) {
    result.errors.push_back(std::move(error));
    reloads_failed_->Add(registry_->shared_slot());
    for (const std::string& line : result.errors) SLUICE_LOG_ERROR("reload: {}", line);
    return result;
  };
  if (leaving_) return failed("the server is draining or stopping");
  if (upgrading_) return failed("a new process is about to take over; repeat it");
  if (options_.config_file.empty()) return failed("there is no configuration file to read again");
  config::ParseResult parsed = config::Load(options_.config_file);
  config::CheckFiles(&parsed);
  for (const config::ConfigError& error : parsed.errors) result.errors.push_back(error.ToString());
  if (!parsed.ok()) {
    std::string last = std::move(result.errors.back());
    result.errors.pop_back();
    return failed(std::move(last));
  }
  config::Config& wanted = parsed.config;
  result.warnings = config::RestartOnlyChanges(config_, wanted);
  for (const config::ConfigError& warning : parsed.warnings) result.warnings.push_back(warning.ToString());

  // First what can fail: files of TLS, new sockets; then everything that a call reads, whole; then the listeners.
  auto tls = tls_->Prepare(wanted);
  if (!tls) return failed(tls.error().detail);
  auto added = listeners_.Prepare(wanted.listeners);
  if (!added) return failed(added.error().detail);
  LimitTable limits = limits_.MakePlan(wanted);
  std::shared_ptr<proxy::ResponseCache> cache = cache_->CacheFor(wanted);
  auto tracer = traces_.TracerFor(wanted.tracing, static_cast<uint32_t>(runtime_->size()));
  auto gates = gates_->Prepare(wanted);
  if (!gates) return failed(gates.error().detail);
  if (auto status = clusters_->Apply(wanted, {&limits, cache, tracer, &gates->table}); !status)
    return failed(status.error().detail);
  gates_->Commit(std::move(*gates));
  traces_.Take(std::move(tracer));
  discovery_->Apply(wanted);
  announce_->Apply(wanted.announce);
  tls_->Commit(std::move(*tls));
  for (const TlsReloader::Ending& ending : tls_->EndingSoon()) {
    const std::string place = config::PlaceOfFile(parsed, ending.file);
    result.warnings.push_back(place.empty() ? ending.text : place + ": " + ending.text);
  }
  limits_.Commit(std::move(limits));
  clusters_->ConfigureEndpoints();
  TakeCacheAndBounds(std::move(cache), wanted);
  listeners_.Apply(wanted.listeners, std::move(*added));
  if (wanted.log.level != config_.log.level) server::SetLogLevel(wanted.log.level);
  // What needs a restart stays as it runs, so that the next reload says so again.
  wanted.runtime = config_.runtime;
  // Without tls in the file (for the next start) there are no names in it either: those in force stay.
  config::AdminRoleOptions roles = wanted.admin.tls.enabled() ? wanted.admin.roles : config_.admin.roles;
  wanted.admin = config_.admin;
  wanted.admin.roles = std::move(roles);
  if (admin_ != nullptr) admin_->SetRoles({wanted.admin.roles.read, wanted.admin.roles.write});
  wanted.state_file = config_.state_file;
  wanted.log.path = config_.log.path;
  wanted.log.format = config_.log.format;
  for (const auto& option : proxy::kCacheOptions) {
    if (option.restart) option.Set(option.Get(config_.cache), &wanted.cache);
  }
  *changes = config::Changes(config_, wanted);
  config_ = std::move(wanted);
  reloads_ok_->Add(registry_->shared_slot());
  SLUICE_LOG_INFO("configuration reloaded from {}", options_.config_file);
  for (const std::string& warning : result.warnings) SLUICE_LOG_WARN("reload: {}", warning);
  return result;
}

admin::ConfigView Server::DescribeConfig(bool from_file) {
  std::error_code none;
  const config::DumpOptions options{std::filesystem::current_path(none).string(), true};
  admin::ConfigView view;
  if (!from_file) {
    std::lock_guard lock(reload_mutex_);
    view.yaml = config::Dump(config_, options);
    return view;
  }
  if (options_.config_file.empty()) {
    view.errors.push_back("there is no configuration file to read again");
    return view;
  }
  config::ParseResult parsed = config::Load(options_.config_file);
  config::CheckFiles(&parsed);
  for (const config::ConfigError& error : parsed.errors) view.errors.push_back(error.ToString());
  if (!parsed.ok()) return view;
  view.yaml = config::Dump(parsed.config, options);
  std::lock_guard lock(reload_mutex_);
  view.warnings = config::RestartOnlyChanges(config_, parsed.config);
  for (const config::ConfigError& warning : parsed.warnings) view.warnings.push_back(warning.ToString());
  return view;
}

}  // namespace sluice::server

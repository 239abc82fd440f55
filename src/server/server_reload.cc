// The server's reload: a whole new configuration in place of the one that runs, or none of it.
#include <algorithm>
#include <latch>

#include "admin/admin_server.h"
#include "base/log.h"
#include "proxy/listener.h"
#include "server/log_setup.h"
#include "server/server.h"

namespace sluice::server {

admin::ReloadResult Server::Reload() {
  std::lock_guard lock(reload_mutex_);
  admin::ReloadResult result;
  auto failed = [&](std::string error) {
    result.errors.push_back(std::move(error));
    reloads_failed_->Add(registry_->shared_slot());
    for (const std::string& line : result.errors) SLUICE_LOG_ERROR("reload: {}", line);
    return result;
  };
  if (leaving_) return failed("the server is draining or stopping");
  if (options_.config_file.empty()) return failed("there is no configuration file to read again");
  config::ParseResult parsed = config::Load(options_.config_file);
  for (const config::ConfigError& error : parsed.errors) result.errors.push_back(error.ToString());
  if (!parsed.ok()) {
    std::string last = std::move(result.errors.back());
    result.errors.pop_back();
    return failed(std::move(last));
  }
  config::Config& wanted = parsed.config;
  result.warnings = config::RestartOnlyChanges(config_, wanted);

  // First what can fail: files of TLS, new sockets; then everything that a call reads, whole; then the listeners.
  auto tls = tls_->Prepare(wanted);
  if (!tls) return failed(tls.error().detail);
  std::vector<std::pair<proxy::ListenerOptions, net::ListenSocket>> added;
  for (const proxy::ListenerOptions& listener : wanted.listeners) {
    bool known = std::any_of(config_.listeners.begin(), config_.listeners.end(),
                             [&](const auto& old) { return old.address == listener.address; });
    if (known) continue;
    auto socket = OpenBeside(listener, wanted);
    if (!socket) return failed(socket.error().detail);
    added.emplace_back(listener, std::move(*socket));
  }
  LimitTable limits = limits_.MakePlan(wanted);
  std::shared_ptr<proxy::ResponseCache> cache = CacheFor(wanted);
  if (auto status = clusters_->Apply(wanted, {&limits, cache}); !status) return failed(status.error().detail);
  tls_->Commit(std::move(*tls));
  limits_.Commit(std::move(limits));
  clusters_->ConfigureEndpoints();
  TakeCacheAndBounds(std::move(cache), wanted);
  // Listeners stand in the order of the former configuration; go through them by the address that was asked for.
  std::vector<std::unique_ptr<proxy::Listener>> kept, gone;
  for (size_t i = 0; i < listeners_.size(); ++i) {
    auto it = std::find_if(wanted.listeners.begin(), wanted.listeners.end(),
                           [&](const auto& l) { return l.address == listeners_[i]->options().address; });
    const bool stays = it != wanted.listeners.end();
    if (stays && !(*it == listeners_[i]->options())) {
      // Waited for: whoever connects when the reload has been answered meets what it says, the certificate that is
      // asked for now.
      std::latch in_force(1);
      listeners_[i]->Update(*it, [&in_force] { in_force.count_down(); });
      in_force.wait();
    }
    (stays ? kept : gone).push_back(std::move(listeners_[i]));
  }
  listeners_ = std::move(kept);
  // Their addresses are free when this returns: the next reload may want them.
  std::latch closed(static_cast<std::ptrdiff_t>(gone.size()));
  for (auto& listener : gone) listener->HandOver([&closed] { closed.count_down(); });
  closed.wait();
  for (auto& [listener, socket] : added) AddListener(listener, std::move(socket));
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
  config_ = std::move(wanted);
  reloads_ok_->Add(registry_->shared_slot());
  SLUICE_LOG_INFO("configuration reloaded from {}", options_.config_file);
  for (const std::string& warning : result.warnings) SLUICE_LOG_WARN("reload: {}", warning);
  return result;
}

}  // namespace sluice::server

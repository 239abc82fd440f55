// What a running process cannot take from a new configuration.
#include "config/config.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {

std::vector<std::string> RestartOnlyChanges(const Config& running, const Config& wanted) {
  std::vector<std::string> out;
  const auto compare = [&out](std::string_view key, const std::string& now, const std::string& then) {
    if (now != then) out.push_back(Cat(key, ": from ", now, " to ", then, " needs a restart"));
  };
  const auto& a = running.runtime;
  const auto& b = wanted.runtime;
  compare("workers", std::to_string(a.workers), std::to_string(b.workers));
  compare("blocking_threshold", FormatDuration(a.blocking_threshold), FormatDuration(b.blocking_threshold));
  compare("blocking_threads", std::to_string(a.blocking_threads), std::to_string(b.blocking_threads));
  // Sockets and files opened once, at the start.
  compare("admin.grpc", Shown(running.admin.grpc), Shown(wanted.admin.grpc));
  compare("admin.tls.certificate", Shown(running.admin.tls.certificate), Shown(wanted.admin.tls.certificate));
  compare("admin.tls.key", Shown(running.admin.tls.key), Shown(wanted.admin.tls.key));
  compare("admin.tls.client_ca", Shown(running.admin.tls.client_ca), Shown(wanted.admin.tls.client_ca));
  compare("admin.http", Shown(running.admin.http), Shown(wanted.admin.http));
  compare("log.path", Shown(running.log.path), Shown(wanted.log.path));
  compare("state_file", Shown(running.state_file), Shown(wanted.state_file));
  // The table is built once.
  const auto yes_no = [](bool value) -> std::string { return value ? "true" : "false"; };
  compare("cache.entry_expected", FormatBytes(running.cache.entry_bytes_expected),
          FormatBytes(wanted.cache.entry_bytes_expected));
  compare("cache.strict", yes_no(running.cache.strict), yes_no(wanted.cache.strict));
  compare("cache.doorkeeper", yes_no(running.cache.doorkeeper), yes_no(wanted.cache.doorkeeper));
  return out;
}

}  // namespace sluice::config

// What a running process cannot take from a new configuration.
#include "config/config.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"
#include "runtime/option_table.h"

namespace sluice::config {

std::vector<std::string> RestartOnlyChanges(const Config& running, const Config& wanted) {
  std::vector<std::string> out;
  const auto compare = [&out](std::string_view key, const std::string& now, const std::string& then) {
    if (now != then) out.push_back(Cat(key, ": from ", now, " to ", then, " needs a restart"));
  };
  const auto compare_table = [&](std::string_view map, const auto& table, const auto& now, const auto& then) {
    for (const auto& option : table) {
      if (!option.restart) continue;
      compare(Cat(map, option.key), FormatValue(option.Get(now), option.range.kind),
              FormatValue(option.Get(then), option.range.kind));
    }
  };
  compare_table("", runtime::kRuntimeOptions, running.runtime, wanted.runtime);
  // Sockets and files opened once, at the start.
  const AdminOptions& a = running.admin;
  const AdminOptions& b = wanted.admin;
  compare("admin.grpc", Shown(a.grpc), Shown(b.grpc));
  compare("admin.tls.certificate", Shown(a.tls.certificate), Shown(b.tls.certificate));
  compare("admin.tls.key", Shown(a.tls.key), Shown(b.tls.key));
  compare("admin.tls.client_ca", Shown(a.tls.client_ca), Shown(b.tls.client_ca));
  compare("admin.http", Shown(a.http), Shown(b.http));
  compare("log.path", Shown(running.log.path), Shown(wanted.log.path));
  compare("log.format", std::string(kLogFormats[static_cast<size_t>(running.log.format)]),
          std::string(kLogFormats[static_cast<size_t>(wanted.log.format)]));
  compare("state_file", Shown(running.state_file), Shown(wanted.state_file));
  compare_table("cache.", proxy::kCacheOptions, running.cache, wanted.cache);
  return out;
}

}  // namespace sluice::config

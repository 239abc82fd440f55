// What concerns the process as a whole: workers, logs, forwarding, state, drain and the hash seed.
#include "config/option_table.h"
#include "config/parsers.h"
#include "config/text.h"
#include "limits/option_table.h"
#include "proxy/option_table.h"
#include "runtime/option_table.h"

namespace sluice::config {
void ParseProcess(Section& root, Config* config) {
  root.Options(runtime::kRuntimeOptions, &config->runtime);
  root.Options(kProcessOptions, config);
  root.Map("drain", [&](Section& drain) {
    drain.Options(kDrainOptions, config);
    if (config->drain_delay.count() > 0 && config->drain_delay >= config->drain_timeout)
      drain.Fail("delay",
                 Cat(config->drain_delay.count(), "ms is not below drain_timeout (", config->drain_timeout.count(),
                     "ms), of which it is a part: no time would be left for "
                     "clients to go elsewhere"));
  });
  root.Map("admin", [&](Section& admin) { ParseAdmin(admin, config); });
  root.Map("log", [&](Section& log) {
    log.Choice("level", kLogLevels, &config->log.level);
    log.Choice("format", kLogFormats, &config->log.format);
    log.WrittenFile("path", &config->log.path);
  });
  root.Map("access_log", [&](Section& log) { ParseAccessLog(log, &config->access_log); });
  root.Map("tracing", [&](Section& tracing) { ParseTracing(tracing, &config->tracing); });
  root.Map("forwarding", [&](Section& forwarding) {
    ParseForwarding(forwarding, config->routes, &config->forwarding);
    CheckClaimsStay(forwarding, config->jwt, config->forwarding);
  });
  root.Map("insight", [&](Section& insight) {
    insight.Options(proxy::kInsightOptions, &config->insight);
    insight.Choice("hot_keys", kHotKeys, &config->insight.hot_keys);
  });
  root.Map("concurrency", limits::kConcurrencyOptions, &config->concurrency);
  root.Map("cache", [&](Section& cache) { ParseCache(cache, &config->cache); });
  root.Map("memory", kMemoryOptions, config);
  root.WrittenFile("state_file", &config->state_file);
  root.Text("hash_seed", &config->hash_seed);
}

}  // namespace sluice::config

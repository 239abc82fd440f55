#include "config/dump.h"

#include <functional>

#include "config/dumpers.h"
#include "config/option_table.h"
#include "config/parsers.h"
#include "config/text.h"
#include "discovery/option_table.h"
#include "proxy/option_table.h"
#include "runtime/option_table.h"

namespace sluice::config {
namespace {

void DumpAdmin(DumpWriter& out, const AdminOptions& admin) {
  out.Text("grpc", admin.grpc);
  out.Map("tls", [&] {
    out.File("certificate", admin.tls.certificate);
    out.File("key", admin.tls.key);
    out.File("client_ca", admin.tls.client_ca);
  });
  out.Map("roles", [&] {
    out.Texts("read", admin.roles.read);
    out.Texts("write", admin.roles.write);
  });
  out.Text("http", admin.http);
}

void DumpAccessLogField(DumpWriter& out, const proxy::AccessLogField& field) {
  using Source = proxy::AccessLogField::Source;
  if (field.source == Source::kCall)
    out.Text("field", proxy::kAccessFieldNames[static_cast<size_t>(field.field)]);
  else
    out.Text(field.source == Source::kMetadata ? "metadata" : "trailer", field.name);
  if (!field.as.empty()) out.Text("as", field.as);
}

}  // namespace

std::string Dump(const Config& config, const DumpOptions& options) {
  DumpWriter out(options.folder, options.hide_secrets);
  out.Comment("The configuration with its defaults, variables replaced, included files joined.");
  out.Options(runtime::kRuntimeOptions, config.runtime);
  out.Each("listeners", config.listeners, [&](const auto& listener) { DumpListener(out, listener); });
  out.Each("clusters", config.clusters, [&](const upstream::ClusterOptions& cluster) {
    const auto found = config.discovery.find(cluster.name);
    DumpCluster(out, cluster, found == config.discovery.end() ? nullptr : &found->second);
  });
  out.Each("announce", config.announce, [&](const discovery::AnnounceOptions& announce) {
    DumpEndpoint(out, announce.endpoint);
    out.Options(discovery::kAnnounceOptions, announce);
    out.Map("etcd", [&] { DumpEtcd(out, announce.etcd); });
  });
  out.Each("jwt", config.jwt, [&](const auto& provider) { DumpJwtProvider(out, provider); });
  out.Each("routes", config.routes, [&](const auto& route) { DumpRoute(out, route, !config.descriptor_set.empty()); });
  out.File("descriptor_set", config.descriptor_set);
  out.Map("xds", [&] { out.File("bootstrap", config.xds_bootstrap); });
  out.Map("concurrency", limits::kConcurrencyOptions, config.concurrency);
  out.Map("memory", kMemoryOptions, config);
  out.Options(kProcessOptions, config);
  out.Map("cache", proxy::kCacheOptions, config.cache);
  out.Map("admin", [&] { DumpAdmin(out, config.admin); });
  out.Map("log", [&] {
    out.Choice("level", kLogLevels, config.log.level);
    out.Choice("format", kLogFormats, config.log.format);
    out.File("path", config.log.path);
  });
  out.Map("access_log", [&] {
    out.Choice("format", kAccessLogFormats, config.access_log.format);
    out.File("path", config.access_log.path);
    out.Options(proxy::kAccessLogOptions, config.access_log);
    out.Each("fields", config.access_log.fields, [&](const auto& field) { DumpAccessLogField(out, field); });
  });
  out.Map("tracing", [&] {
    out.Text("endpoint", config.tracing.endpoint);
    out.Text("service_name", config.tracing.service_name);
    out.Map("sample", proxy::kTraceSampleOptions, config.tracing);
    out.Choice("propagate", kTracePropagates, config.tracing.propagate);
    out.Options(proxy::kTracingOptions, config.tracing);
  });
  out.Map("forwarding", [&] {
    out.Options(proxy::kForwardingOptions, config.forwarding);
    out.Choice("request_id", kRequestIds, config.forwarding.request_id);
    out.Texts("remove", config.forwarding.remove);
  });
  out.Map("insight", [&] {
    out.Options(proxy::kInsightOptions, config.insight);
    out.Choice("hot_keys", kHotKeys, config.insight.hot_keys);
  });
  out.Map("drain", kDrainOptions, config);
  out.File("state_file", config.state_file);
  out.Secret("hash_seed", config.hash_seed);
  return out.Take();
}

}  // namespace sluice::config

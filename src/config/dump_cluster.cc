// Listeners and clusters, as YAML.
#include "config/dumpers.h"
#include "config/text.h"
#include "discovery/option_table.h"
#include "net/tls/option_table.h"
#include "proxy/option_table.h"
#include "upstream/health/option_table.h"
#include "upstream/option_table.h"

namespace sluice::config {
namespace {

std::string Octal(uint32_t mode) {
  std::string text = "\"0000\"";
  for (size_t i = 4; i > 0; --i, mode /= 8) text[i] = static_cast<char>('0' + mode % 8);
  return text;
}

void DumpTls(DumpWriter& out, const net::TlsOptions& tls) {
  out.SomeFile("certificate", tls.certificate);
  out.SomeFile("key", tls.key);
  out.Texts("allowed_names", tls.allowed_names);
  out.Choice("min_version", net::kTlsVersions, tls.version_min);
}

void DumpListenerTls(DumpWriter& out, const net::ListenerTlsOptions& tls) {
  DumpTls(out, tls);
  if (!tls.more.empty()) {
    out.Each("sni", tls.more, [&](const net::TlsPairOptions& pair) {
      out.File("certificate", pair.certificate);
      out.File("key", pair.key);
    });
  }
  out.SomeFile("client_ca", tls.ca);
  for (const auto& option : net::kListenerTlsOptions) {
    // Without client_ca it has no meaning, and must not be said.
    if (option.key == "require_client_certificate" && tls.ca.empty()) continue;
    out.Line(option.key, FormatValue(option.Get(tls), option.range.kind));
  }
}

void DumpClusterTls(DumpWriter& out, const net::ClusterTlsOptions& tls) {
  if (tls.ca == net::kSystemCa)
    out.Text("ca", tls.ca);
  else
    out.File("ca", tls.ca);
  if (!tls.server_name.empty()) out.Text("server_name", tls.server_name);
  DumpTls(out, tls);
}

void DumpDns(DumpWriter& out, const discovery::DnsOptions& dns) {
  out.Text("name", dns.name);
  out.Choice("records", discovery::kDnsRecords, dns.records);
  out.Choice("mode", discovery::kDnsModes, dns.mode);
  if (dns.records == discovery::DnsRecords::kAddress) out.Options(discovery::kDnsOptions, dns);
  out.Texts("servers", dns.servers);
}

void DumpDiscovery(DumpWriter& out, const discovery::DiscoveryOptions& discovery) {
  out.Options(discovery::kDiscoveryOptions, discovery);
  out.Choice("changes_by_rpc", discovery::kRpcRules, discovery.changes_by_rpc);
  switch (discovery.kind) {
    case discovery::SourceKind::kNone:
      return;
    case discovery::SourceKind::kFile:
      return out.Map("file", [&] { out.File("path", discovery.file.path); });
    case discovery::SourceKind::kDns:
      return out.Map("dns", [&] { DumpDns(out, discovery.dns); });
    case discovery::SourceKind::kEtcd:
      return out.Map("etcd", [&] { DumpEtcd(out, discovery.etcd); });
    case discovery::SourceKind::kXds:
      return out.Map("xds", [&] { out.Text("resource", discovery.xds.resource); });
  }
}

}  // namespace

void DumpListener(DumpWriter& out, const proxy::ListenerOptions& listener) {
  out.Text("address", listener.address.ToString());
  out.Text("name", listener.name);
  out.Line("unix_mode", Octal(listener.unix_mode));
  out.Options(proxy::kListenerOptions, listener);
  out.Options(http2::kListenerLifeOptions, listener.life);
  DumpConnections(out, listener);
  out.Choice("paths", proxy::kPathRules, listener.paths);
  if (listener.tls.enabled) out.Map("tls", [&] { DumpListenerTls(out, listener.tls); });
  if (const proxy::TrustedProxies& proxies = listener.trusted_proxies; proxies.hops > 0) {
    out.Map("trusted_proxies", [&] {
      out.Options(proxy::kTrustedProxiesOptions, proxies);
      std::vector<std::string> addresses;
      for (const net::AddressRange& range : proxies.addresses) addresses.push_back(range.ToString());
      out.Texts("addresses", addresses);
      out.Texts("names", proxies.names);
    });
  }
  if (!listener.grpc_web.enabled) return;
  const proxy::CorsOptions& cors = listener.grpc_web.cors;
  if (!cors.enabled()) return out.Line("grpc_web", "{}");
  out.Map("grpc_web", [&] {
    out.Map("cors", [&] {
      out.Texts("origins", cors.origins);
      out.Texts("headers", cors.headers);
      out.Texts("expose", cors.expose);
      out.Options(proxy::kCorsOptions, cors);
    });
  });
}

void DumpEndpoint(DumpWriter& out, const upstream::EndpointOptions& endpoint) {
  out.Text("address", endpoint.address.ToString());
  out.Text("name", endpoint.name);
  out.Options(upstream::kEndpointOptions, endpoint);
  out.Text("locality", endpoint.locality);
}

void DumpEtcd(DumpWriter& out, const discovery::EtcdOptions& etcd) {
  out.Texts("servers", etcd.servers);
  out.Text("prefix", etcd.prefix);
  if (!etcd.user.empty()) out.Text("user", etcd.user);
  out.SomeFile("password_file", etcd.password_file);
  if (!etcd.tls) return;
  out.Map("tls", [&] {
    out.SomeFile("ca", etcd.ca);
    out.SomeFile("certificate", etcd.certificate);
    out.SomeFile("key", etcd.key);
    out.Text("server_name", etcd.server_name);
  });
}

void DumpCluster(DumpWriter& out, const upstream::ClusterOptions& cluster,
                 const discovery::DiscoveryOptions* discovery) {
  out.Text("name", cluster.name);
  out.Choice("policy", upstream::kPolicies, cluster.policy);
  out.Choice("ring", upstream::kRings, cluster.ring);
  if (discovery != nullptr) out.Map("discovery", [&] { DumpDiscovery(out, *discovery); });
  out.Each("endpoints", cluster.endpoints, [&](const auto& endpoint) { DumpEndpoint(out, endpoint); });
  out.Options(upstream::kClusterOptions, cluster);
  DumpConnections(out, cluster);
  out.Map("rate_limit", limits::kRateOptions, cluster.rate_limit);
  out.Map("concurrency", limits::kConcurrencyOptions, cluster.concurrency);
  out.Map("endpoint_concurrency", limits::kConcurrencyOptions, cluster.endpoint_concurrency);
  out.Map("retry_budget", upstream::kRetryBudgetOptions, cluster.retry_budget);
  out.Map("ejection", [&] {
    out.Options(upstream::kEjectionOptions, cluster.ejection);
    out.Map("slow", upstream::kSlowOptions, cluster.ejection.slow);
  });
  out.Text("locality", cluster.locality);
  out.Map("spill", upstream::kSpillOptions, cluster.spill);
  out.Map("slow_start", upstream::kSlowStartOptions, cluster.slow_start);
  out.Map("health", [&] {
    out.Choice("mode", upstream::kHealthModes, cluster.health.mode);
    out.Text("service", cluster.health.service);
    out.Options(upstream::kHealthOptions, cluster.health);
  });
  if (cluster.tls.enabled) out.Map("tls", [&] { DumpClusterTls(out, cluster.tls); });
}

}  // namespace sluice::config

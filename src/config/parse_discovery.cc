// The source that keeps a cluster's list.
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "discovery/option_table.h"

namespace sluice::config {

using discovery::SourceKind;

namespace {

// A name, with a closing dot where the search domains shall not be tried.
void ParseDnsName(Section& section, std::string_view key, const std::string& text, std::string* out) {
  const auto address = net::Address::Parse(text + ":1");
  if (!address.ok() || address->kind() != net::Address::Kind::kName) {
    const bool ip = address.ok() && address->kind() == net::Address::Kind::kIp;
    section.Fail(key, Cat(Shown(text), ip ? " is an address, which no server is asked for" : " is no DNS name"));
  } else {
    *out = text;
  }
}

constexpr std::string_view kDnsServers = "allowed: an IP address, with a port or without: 10.0.0.2, [::1]:5353";

// In the form that the resolver takes: IPv6 in brackets where there is a port.
bool IsDnsServer(const std::string& text) {
  for (const std::string& with_port : {text, text + ":53", "[" + text + "]:53"}) {
    const auto address = net::Address::Parse(with_port);
    if (address.ok() && address->kind() == net::Address::Kind::kIp && address->port() != 0) return true;
  }
  return false;
}

void ParseDns(Section& section, discovery::DnsOptions* out) {
  std::string name;
  if (section.Require("name") != nullptr && section.Text("name", &name))
    ParseDnsName(section, "name", name, &out->name);
  section.Choice("records", discovery::kDnsRecords, &out->records);
  section.Choice("mode", discovery::kDnsModes, &out->mode);
  section.Options(discovery::kDnsOptions, out);
  const bool srv = out->records == discovery::DnsRecords::kSrv;
  if (!srv) section.Require("port");
  if (srv && section.Find("port") != nullptr) section.Fail("port", "is in the SRV records");
  section.Each("servers", discovery::kDnsServersMax, [&](const Node& node, std::string path) {
    const std::string* text = section.Scalar(node, path, "an IP address, with a port or without");
    if (text == nullptr) return;
    if (IsDnsServer(*text))
      out->servers.push_back(*text);
    else
      section.reader().Fail(node, path, Cat(Shown(*text), " is no DNS server; ", kDnsServers));
  });
}

}  // namespace

// As gRPC has it: dns:[//server/]name:port (its naming document).
void ParseDnsTarget(Section& section, const std::string& text, discovery::DiscoveryOptions* out) {
  out->kind = SourceKind::kDns;
  std::string_view rest = std::string_view(text).substr(kDnsScheme.size());
  if (rest.starts_with("//")) {
    const size_t slash = rest.find('/', 2);
    const std::string server(rest.substr(2, slash == rest.npos ? slash : slash - 2));
    rest = slash == rest.npos ? std::string_view() : rest.substr(slash + 1);
    if (!server.empty() && !IsDnsServer(server))
      return section.Fail("endpoints", Cat(Shown(text), ": ", Shown(server), " is no DNS server; ", kDnsServers));
    if (!server.empty()) out->dns.servers = {server};
  }
  const auto address = net::Address::Parse(rest);
  if (!address.ok() || address->kind() != net::Address::Kind::kName || address->port() == 0)
    return section.Fail("endpoints", Cat(Shown(text), ": allowed: dns:///name:port, dns://server/name:port"));
  out->dns.name = address->host();
  out->dns.port = address->port();
}

void ParseDiscovery(Section& section, discovery::DiscoveryOptions* out) {
  section.Options(discovery::kDiscoveryOptions, out);
  section.Choice("changes_by_rpc", discovery::kRpcRules, &out->changes_by_rpc);
  section.Map("file", [&](Section& file) {
    out->kind = SourceKind::kFile;
    std::string path;
    if (file.Require("path") == nullptr || !file.Text("path", &path)) return;
    if (path.empty())
      file.Fail("path", "is empty; a file is needed");
    else
      out->file.path = file.FileAt("path", std::move(path), NamedFile::Use::kLater);
  });
  section.Map("dns", [&](Section& dns) {
    if (out->enabled()) section.Fail("dns", "is a second source; only one is allowed");
    out->kind = SourceKind::kDns;
    ParseDns(dns, &out->dns);
  });
  section.Map("xds", [&](Section& xds) {
    if (out->enabled()) section.Fail("xds", "is a second source; only one is allowed");
    ParseXdsSource(xds, out);
  });
  section.Map("etcd", [&](Section& etcd) {
    if (out->enabled()) section.Fail("etcd", "is a second source; only one is allowed");
    out->kind = SourceKind::kEtcd;
    ParseEtcd(etcd, &out->etcd);
  });
  if (!out->enabled()) section.Fail("file", "is missing: discovery names no source; allowed: file, dns, etcd, xds");
}

}  // namespace sluice::config

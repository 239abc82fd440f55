// TLS of listeners and clusters: names of files, trusted authorities, allowed peers. The contents of the files are
// checked where they are read.
#include <algorithm>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "net/tls/option_table.h"

namespace sluice::config {
namespace {

// The name of a file; an empty one is a mistake, as it would be TLS without what it was to have.
void ParseFile(Section& section, std::string_view key, std::string* out) {
  std::string name;
  if (!section.Text(key, &name)) return;
  if (name.empty()) return section.Fail(key, "is empty; the name of a PEM file is needed");
  *out = section.FileAt(key, std::move(name), NamedFile::Use::kNeeded);
}

// What listeners and clusters have in common.
void ParseCommon(Section& section, net::TlsOptions* out) {
  ParseFile(section, "certificate", &out->certificate);
  ParseFile(section, "key", &out->key);
  ParseAllowedNames(section, "allowed_names", "a name: a.example.com, *.example.com, spiffe://..., CN=name", false,
                    &out->allowed_names);
  section.Choice("min_version", net::kTlsVersions, &out->version_min);
}

bool IsDnsName(const std::string& text) {
  auto address = net::Address::Parse(text + ":1");
  return address.ok() && address->kind() == net::Address::Kind::kName;
}

// The endpoints are named by address, and certificates by what was asked for.
void NameByDns(Section& section, const discovery::DnsOptions& dns, net::ClusterTlsOptions* out) {
  if (!out->server_name.empty() || dns.name.empty()) return;
  if (dns.records == discovery::DnsRecords::kAddress) {
    out->server_name = dns.name.substr(0, dns.name.size() - (dns.name.ends_with('.') ? 1 : 0));
  } else if (out->allowed_names.empty()) {
    section.reader().Fail(section.node(), section.path(),
                          "no certificate is made for the name of SRV records; give server_name or allowed_names");
  }
}

}  // namespace

void ParseAllowedNames(Section& section, std::string_view key, std::string_view what, bool unique,
                       std::vector<std::string>* out) {
  section.Each(key, net::kAllowedNamesMax, [&](const Node& node, std::string path) {
    const std::string* name = section.Scalar(node, path, what);
    if (name == nullptr) return;
    if (base::Status good = net::CheckAllowedName(*name); !good.ok()) {
      section.reader().Fail(node, std::move(path), good.error().detail);
    } else if (unique && std::find(out->begin(), out->end(), *name) != out->end()) {
      section.reader().Fail(node, std::move(path), Cat(Shown(*name), " is there twice"));
    } else {
      out->push_back(*name);
    }
  });
}

void ParseListenerTls(Section& section, net::ListenerTlsOptions* out) {
  out->enabled = true;
  section.Require("certificate");
  section.Require("key");
  ParseCommon(section, out);
  section.Each("sni", net::kTlsPairsMax, [&](const Node& node, std::string path) {
    Section pair(section.reader(), node, std::move(path));
    pair.Require("certificate");
    pair.Require("key");
    net::TlsPairOptions& more = out->more.emplace_back();
    ParseFile(pair, "certificate", &more.certificate);
    ParseFile(pair, "key", &more.key);
  });
  ParseFile(section, "client_ca", &out->ca);
  if (section.Find("client_ca") != nullptr && section.Find("client_ca")->text == net::kSystemCa) {
    section.Fail("client_ca", "a public authority certifies every applicant; name the file of your own authority");
  }
  section.Options(net::kListenerTlsOptions, out);
  if (section.Find("require_client_certificate") != nullptr && section.Find("client_ca") == nullptr) {
    section.Fail("require_client_certificate", "needs client_ca: without it certificates are not asked for");
  }
  if (!out->allowed_names.empty() && (section.Find("client_ca") == nullptr || !out->require_client_certificate)) {
    section.Fail("allowed_names", "needs client_ca, and require_client_certificate: true");
  }
}

void ParseClusterTls(Section& section, const discovery::DiscoveryOptions& discovery,
                     upstream::ClusterOptions* cluster) {
  net::ClusterTlsOptions* out = &cluster->tls;
  out->enabled = true;
  ParseCommon(section, out);
  if (const Node* ca = section.Require("ca"); ca != nullptr && ca->text == net::kSystemCa) {
    out->ca = net::kSystemCa;
  } else {
    ParseFile(section, "ca", &out->ca);
  }
  if ((section.Find("certificate") == nullptr) != (section.Find("key") == nullptr)) {
    section.Fail(section.Find("key") != nullptr ? "key" : "certificate",
                 "certificate and key are only of use together");
  }
  if (section.Text("server_name", &out->server_name) && !IsDnsName(out->server_name)) {
    section.Fail("server_name",
                 Cat(Shown(out->server_name), " is not a DNS name; an endpoint's IP address is looked for without it"));
  }
  if (discovery.kind == discovery::SourceKind::kDns) NameByDns(section, discovery.dns, out);
  if (!out->server_name.empty() || !out->allowed_names.empty()) return;
  for (const upstream::EndpointOptions& endpoint : cluster->endpoints) {
    if (endpoint.address.kind() != net::Address::Kind::kUnix) continue;
    section.reader().Fail(section.node(), section.path(),
                          Cat("endpoint ", endpoint.name,
                              " has no name to look for in its certificate; give server_name "
                              "or allowed_names"));
    return;
  }
}

}  // namespace sluice::config

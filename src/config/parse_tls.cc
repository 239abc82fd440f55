// TLS of listeners and clusters: names of files, whom to trust, who may come. What is in the files is checked where
// they are read.
#include <array>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;
using net::TlsVersion;

constexpr std::array<std::pair<std::string_view, TlsVersion>, 2> kVersions = {{
    {"1.2", TlsVersion::k12},
    {"1.3", TlsVersion::k13},
}};

// The name of a file; an empty one is a mistake, as it would be TLS without what it was to have.
void ParseFile(Section& section, std::string_view key, std::string* out) {
  std::string name;
  if (!section.Text(key, &name)) return;
  if (name.empty()) return section.Fail(key, "is empty; the name of a PEM file is needed");
  *out = section.reader().Beside(std::move(name));
}

// What listeners and clusters have in common.
void ParseCommon(Section& section, net::TlsOptions* out) {
  ParseFile(section, "certificate", &out->certificate);
  ParseFile(section, "key", &out->key);
  section.Each("allowed_names", net::kAllowedNamesMax, [&](const Node& node, std::string path) {
    const std::string* name = section.Scalar(node, path, "a name: a.example.com, *.example.com, spiffe://..., CN=name");
    if (name == nullptr) return;
    if (base::Status good = net::CheckAllowedName(*name); !good.ok()) {
      section.reader().Fail(node, std::move(path), good.error().detail);
      return;
    }
    out->allowed_names.push_back(*name);
  });
  section.Choice<TlsVersion>("min_version", kVersions, &out->version_min);
}

bool IsDnsName(const std::string& text) {
  auto address = net::Address::Parse(text + ":1");
  return address.ok() && address->kind() == net::Address::Kind::kName;
}

}  // namespace

void ParseListenerTls(Reader& reader, const Node& node, std::string path, net::ListenerTlsOptions* out) {
  Section section(reader, node, std::move(path));
  out->enabled = true;
  section.Require("certificate");
  section.Require("key");
  ParseCommon(section, out);
  ParseFile(section, "client_ca", &out->ca);
  if (section.Find("client_ca") != nullptr && section.Find("client_ca")->text == net::kSystemCa) {
    section.Fail("client_ca", "anybody can have a certificate of a public authority; name the file of your own");
  }
  section.Bool("require_client_certificate", &out->require_client_certificate);
  if (section.Find("require_client_certificate") != nullptr && section.Find("client_ca") == nullptr) {
    section.Fail("require_client_certificate", "needs client_ca: without it certificates are not asked for");
  }
  if (!out->allowed_names.empty() && (section.Find("client_ca") == nullptr || !out->require_client_certificate)) {
    section.Fail("allowed_names", "needs client_ca, and require_client_certificate: true");
  }
  section.Duration("handshake_timeout", {1ms, 10min}, &out->handshake_timeout);
  section.Number("handshakes_max", {1, 1000000}, &out->handshakes_max);
}

void ParseClusterTls(Reader& reader, const Node& node, std::string path, upstream::ClusterOptions* cluster) {
  net::ClusterTlsOptions* out = &cluster->tls;
  Section section(reader, node, std::move(path));
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
  if (!out->server_name.empty() || !out->allowed_names.empty()) return;
  for (const upstream::EndpointOptions& endpoint : cluster->endpoints) {
    if (endpoint.address.kind() != net::Address::Kind::kUnix) continue;
    reader.Fail(node, section.path(),
                Cat("endpoint ", endpoint.name,
                    " has no name to look for in its certificate; give server_name "
                    "or allowed_names"));
    return;
  }
}

}  // namespace sluice::config

// The control plane: where it listens, with which certificate, and the roles of its clients.
#include "config/parsers.h"
#include "config/text.h"
#include "net/tls/options.h"

namespace sluice::config {
namespace {

// Stores the canonical text; empty means none. Reports an address that a listener or the other port has.
void ParseAdminAddress(Section& section, std::string_view key, const Config& config, std::string_view other,
                       std::string* out) {
  std::string text;
  if (!section.Text(key, &text)) return;
  if (text.empty() || (key == "grpc" && text == kAdminAuto)) {
    *out = std::move(text);
    return;
  }
  net::Address address;
  if (!ParseListenAddress(section, key, text, &address)) return;
  *out = address.ToString();
  if (address.kind() != net::Address::Kind::kUnix && address.port() == 0) return;  // the system picks free ones
  if (*out == other) section.Fail(key, Cat("address ", *out, " is also that of admin.grpc"));
  for (const auto& listener : config.listeners) {
    if (Overlap(listener.address, address)) {
      section.Fail(key, Cat("address ", *out, " is also that of a listener",
                            listener.address == address ? "" : Cat(", ", listener.address.ToString())));
      return;
    }
  }
}

void ParseAdminTls(Section& section, AdminTlsOptions* out) {
  std::string_view missing;
  for (auto [key, path] : {std::pair<std::string_view, std::string*>("certificate", &out->certificate),
                           std::pair<std::string_view, std::string*>("key", &out->key),
                           std::pair<std::string_view, std::string*>("client_ca", &out->client_ca)}) {
    section.Text(key, path);
    *path = section.FileAt(key, std::move(*path), NamedFile::Use::kNeeded);
    if (path->empty()) missing = key;
  }
  const bool some = !out->certificate.empty() || !out->key.empty() || !out->client_ca.empty();
  if (some && !missing.empty()) {
    section.Fail(missing, "no file; certificate, key and client_ca are needed, or none of them");
  }
}

// Every peer that reaches the admin RPC may change everything, unless certificates and roles limit it.
void CheckAccess(Section& section, const AdminOptions& admin) {
  const bool roles = !admin.roles.read.empty() || !admin.roles.write.empty();
  if (!admin.tls.enabled()) {
    if (roles) section.Fail("roles", "go by client certificates: admin.tls is needed");
    const base::Result<net::Address> address = net::Address::Parse(admin.grpc);
    if (address.ok() && address->kind() == net::Address::Kind::kIp && !address->is_loopback()) {
      section.Fail("grpc", Cat("address ", admin.grpc,
                               " lets every client that reaches it change everything; allowed: unix:/path, a "
                               "loopback address, or admin.tls with client certificates"));
    }
    return;
  }
  if (admin.grpc.empty()) {
    section.Fail("tls", "has no use without admin.grpc");
  } else if (admin.grpc.starts_with("unix:") || admin.grpc == kAdminAuto) {
    section.Fail("tls", "is for an IP address; access to a Unix socket is decided by its file mode");
  }
  if (!roles) section.Fail("roles", "is empty, so no client could use the admin RPC; give write, read or both a name");
}

}  // namespace

void ParseAdmin(Section& section, Config* config) {
  const size_t errors = section.reader().error_count();
  ParseAdminAddress(section, "grpc", *config, "", &config->admin.grpc);
  ParseAdminAddress(section, "http", *config, config->admin.grpc, &config->admin.http);
  if (config->admin.http.starts_with("unix:")) {
    section.Fail("http", "a Unix socket; only an IP address and a port are allowed");
  }
  section.Map("tls", [&](Section& tls) { ParseAdminTls(tls, &config->admin.tls); });
  section.Map("roles", [&](Section& roles) {
    constexpr std::string_view kName = "a name of a certificate";
    ParseAllowedNames(roles, "read", kName, true, &config->admin.roles.read);
    ParseAllowedNames(roles, "write", kName, true, &config->admin.roles.write);
  });
  if (section.reader().error_count() == errors) CheckAccess(section, config->admin);
}

}  // namespace sluice::config

// The control plane: where it listens, with which certificate, and who may do what.
#include <algorithm>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "net/tls_options.h"

namespace sluice::config {
namespace {

// Stores the canonical text; empty means none. Reports an address that a listener or the other port has.
void ParseAdminAddress(Section& section, std::string_view key, const Config& config, std::string_view other,
                       std::string* out) {
  std::string text;
  if (!section.Text(key, &text)) return;
  if (text.empty()) {
    out->clear();
    return;
  }
  net::Address address;
  if (!ParseListenAddress(section, key, text, &address)) return;
  *out = address.ToString();
  if (address.kind() != net::Address::Kind::kUnix && address.port() == 0) return;  // the system picks free ones
  if (*out == other) section.Fail(key, Cat("address ", *out, " is also that of admin.grpc"));
  for (const auto& listener : config.listeners) {
    if (listener.address == address) {
      section.Fail(key, Cat("address ", *out, " is also that of a listener"));
      return;
    }
  }
}

// Each a file, relative to the directory of `file`, which is the configuration's.
void ParseAdminTls(Reader& reader, const Node& node, std::string_view file, AdminTlsOptions* out) {
  Section section(reader, node, "admin.tls");
  const size_t slash = file.rfind('/');
  std::string_view missing;
  for (auto [key, path] : {std::pair<std::string_view, std::string*>("certificate", &out->certificate),
                           std::pair<std::string_view, std::string*>("key", &out->key),
                           std::pair<std::string_view, std::string*>("client_ca", &out->client_ca)}) {
    section.Text(key, path);
    if (path->empty()) {
      missing = key;
    } else if ((*path)[0] != '/' && slash != file.npos) {
      *path = Cat(file.substr(0, slash + 1), *path);
    }
  }
  const bool some = !out->certificate.empty() || !out->key.empty() || !out->client_ca.empty();
  if (some && !missing.empty()) {
    section.Fail(missing, "no file; certificate, key and client_ca are needed, or none of them");
  }
}

void ParseNames(Section& section, std::string_view key, std::vector<std::string>* out) {
  section.Each(key, net::kAllowedNamesMax, [&](const Node& node, std::string path) {
    const std::string* name = section.Scalar(node, path, "a name of a certificate");
    if (name == nullptr) return;
    if (base::Status status = net::CheckAllowedName(*name); !status) {
      section.reader().Fail(node, path, status.error().detail);
    } else if (std::find(out->begin(), out->end(), *name) != out->end()) {
      section.reader().Fail(node, path, Cat(Shown(*name), " is there twice"));
    } else {
      out->push_back(*name);
    }
  });
}

void ParseRoles(Reader& reader, const Node& node, AdminRoleOptions* out) {
  Section section(reader, node, "admin.roles");
  ParseNames(section, "read", &out->read);
  ParseNames(section, "write", &out->write);
}

// Whoever reaches the admin RPC may change everything, unless certificates and roles say who may what.
void CheckAccess(Section& section, const AdminOptions& admin) {
  const bool roles = !admin.roles.read.empty() || !admin.roles.write.empty();
  if (!admin.tls.enabled()) {
    if (roles) section.Fail("roles", "go by client certificates: admin.tls is needed");
    const base::Result<net::Address> address = net::Address::Parse(admin.grpc);
    if (address.ok() && address->kind() == net::Address::Kind::kIp && !address->is_loopback()) {
      section.Fail("grpc", Cat("address ", admin.grpc,
                               " lets everybody who reaches it change everything; allowed: unix:/path, a "
                               "loopback address, or admin.tls with client certificates"));
    }
    return;
  }
  if (admin.grpc.empty()) {
    section.Fail("tls", "has no use without admin.grpc");
  } else if (admin.grpc.starts_with("unix:")) {
    section.Fail("tls", "is for an IP address; the Unix socket's file mode says who may connect to it");
  }
  if (!roles) section.Fail("roles", "names nobody, so nobody could use the admin RPC; give write, read or both a name");
}

}  // namespace

void ParseAdmin(Reader& reader, const Node& node, std::string_view file, Config* config) {
  Section section(reader, node, "admin");
  const size_t errors = reader.error_count();
  ParseAdminAddress(section, "grpc", *config, "", &config->admin.grpc);
  ParseAdminAddress(section, "http", *config, config->admin.grpc, &config->admin.http);
  if (config->admin.http.starts_with("unix:")) {
    section.Fail("http", "a Unix socket; only an IP address and a port are allowed");
  }
  if (const Node* tls = section.Find("tls")) ParseAdminTls(reader, *tls, file, &config->admin.tls);
  if (const Node* roles = section.Find("roles")) ParseRoles(reader, *roles, &config->admin.roles);
  if (reader.error_count() == errors) CheckAccess(section, config->admin);
}

}  // namespace sluice::config

// Listeners: addresses, socket options, and the rules between them.
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {

bool ParseName(Section& section, std::string_view key, std::string* out) {
  std::string name;
  if (!section.Text(key, &name)) return false;
  bool visible = true;
  for (char c : name) visible = visible && c > ' ' && c <= '~';
  if (name.empty() || name.size() > kNameBytesMax || !visible) {
    section.Fail(key,
                 Cat(Shown(name), " is not a name: 1 to ", kNameBytesMax, " visible ASCII characters without blanks"));
    return false;
  }
  *out = std::move(name);
  return true;
}

bool ParseListenAddress(Section& section, std::string_view key, const std::string& text, net::Address* out) {
  auto address = net::Address::Parse(text);
  if (!address.ok()) {
    section.Fail(key, address.error().detail);
    return false;
  }
  if (address->kind() == net::Address::Kind::kName) {
    section.Fail(key, Cat(Shown(text),
                          ": a name may mean several addresses; to listen, write an IP address "
                          "(127.0.0.1:port, [::1]:port) or unix:/path"));
    return false;
  }
  *out = std::move(*address);
  return true;
}

bool IsAny(const net::Address& address) {
  return address.kind() == net::Address::Kind::kIp && (address.host() == "0.0.0.0" || address.host() == "::");
}

bool Overlap(const net::Address& a, const net::Address& b) {
  if (a == b) return true;
  const auto is_ipv6 = [](const net::Address& address) { return address.host().find(':') != std::string::npos; };
  return a.kind() == net::Address::Kind::kIp && b.kind() == net::Address::Kind::kIp && a.port() == b.port() &&
         is_ipv6(a) == is_ipv6(b) && (IsAny(a) || IsAny(b));
}

bool UniqueNames::Add(Reader& reader, const Node& node, const std::string& path, std::string_view what,
                      const std::string& name) {
  const auto [first, added] = places_.emplace(name, std::pair(path, &node));
  if (!added) {
    const auto& [other, at] = first->second;
    reader.Fail(node, path, Cat(what, " is also that of ", other, ElsewhereOf(*at, node)));
  }
  return added;
}

std::string ElsewhereOf(const Node& place, const Node& node) {
  if (place.file == node.file || place.file == nullptr) return "";
  return Cat(" (", place.file->name, ":", place.line, ":", place.column, ")");
}

namespace {

void ParseTrustedProxies(Section& section, const net::ListenerTlsOptions& tls, proxy::TrustedProxies* out) {
  section.Require("hops");
  section.Options(proxy::kTrustedProxiesOptions, out);
  section.Each("addresses", proxy::kTrustedProxiesMax, [&](const Node& node, std::string path) {
    const std::string* text = section.Scalar(node, path, "a range of addresses, like 10.0.0.0/8");
    if (text == nullptr) return;
    auto range = net::AddressRange::Parse(*text);
    if (!range.ok()) return section.reader().Fail(node, path, range.error().detail);
    out->addresses.push_back(std::move(*range));
  });
  ParseAllowedNames(section, "names", "a name: a.example.com, *.example.com, spiffe://..., CN=name", true, &out->names);
  const auto lists = [&](std::string_view key) {
    const Node* node = section.Find(key);
    return node != nullptr && !node->items.empty();
  };
  if (!lists("addresses") && !lists("names"))
    section.Fail("addresses", "or names must say which peers are these proxies: any client can write what they write");
  if (!out->names.empty() && tls.ca.empty())
    section.Fail("names", "the listener asks its peers for no certificates (tls.client_ca), so none has a name");
}

void ParseListener(Section& section, proxy::ListenerOptions* out) {
  std::string address;
  if (section.Require("address") != nullptr && section.Text("address", &address) &&
      ParseListenAddress(section, "address", address, &out->address)) {
    out->name = out->address.ToString();
  }
  ParseName(section, "name", &out->name);
  section.Mode("unix_mode", &out->unix_mode);
  section.Options(proxy::kListenerOptions, out);
  section.Options(http2::kListenerLifeOptions, &out->life);
  ParseConnections(section, out);
  section.Choice("paths", proxy::kPathRules, &out->paths);
  section.Map("tls", [&](Section& tls) { ParseListenerTls(tls, &out->tls); });
  section.Map("trusted_proxies",
              [&](Section& proxies) { ParseTrustedProxies(proxies, out->tls, &out->trusted_proxies); });
  section.Map("grpc_web", [&](Section& web) { ParseGrpcWeb(web, &out->grpc_web); });
}

// The system refuses to listen on 127.0.0.1:80 beside 0.0.0.0:80, which is that address too.
void CheckWildcard(Reader& reader, const Node& node, const std::string& path,
                   const std::vector<proxy::ListenerOptions>& before, const net::Address& address) {
  for (size_t i = 0; i < before.size(); ++i) {
    const net::Address& other = before[i].address;
    if (other == address || !Overlap(other, address)) continue;
    const net::Address& any = IsAny(address) ? address : other;
    return reader.Fail(node, path,
                       Cat("address ", address.ToString(), " and ", other.ToString(), " of listeners[", i,
                           "] cannot both be listened on: ", any.host(), " is every address of this host"));
  }
}

}  // namespace

void ParseListeners(Section& root, std::vector<proxy::ListenerOptions>* out) {
  UniqueNames addresses, names;
  if (root.Require("listeners") == nullptr) return;
  Reader& reader = root.reader();
  const bool listed = root.Each("listeners", kListenersMax, [&](const Node& node, std::string path) {
    proxy::ListenerOptions listener;
    {
      Section section(reader, node, path);
      ParseListener(section, &listener);
    }
    const std::string address = listener.address.ToString();
    const bool any_port = listener.address.kind() != net::Address::Kind::kUnix && listener.address.port() == 0;
    if (!listener.name.empty() && !any_port && addresses.Add(reader, node, path, Cat("address ", address), address)) {
      names.Add(reader, node, path, Cat("name ", Shown(listener.name)), listener.name);
      CheckWildcard(reader, node, path, *out, listener.address);
    }
    out->push_back(std::move(listener));
  });
  if (listed && out->empty()) root.Fail("listeners", "is empty; at least one listener is needed");
}

}  // namespace sluice::config

// Listeners: addresses, socket options, and the rules that hold among them.
#include <map>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {

using namespace std::chrono_literals;

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

namespace {

void ParseListener(Reader& reader, const Node& node, std::string path, proxy::ListenerOptions* out) {
  Section section(reader, node, std::move(path));
  std::string address;
  if (section.Require("address") != nullptr && section.Text("address", &address) &&
      ParseListenAddress(section, "address", address, &out->address)) {
    out->name = out->address.ToString();
  }
  ParseName(section, "name", &out->name);
  section.Mode("unix_mode", &out->unix_mode);
  section.Number("connections_max", {1, 1000000}, &out->connections_max);
  section.Number("connections_per_peer_max", {0, 1000000}, &out->connections_per_peer_max);
  section.Number("backlog", {1, 65535}, &out->backlog);
  ParseLife(section, &out->life);
  section.Duration("abuse_delay", {0ms, 1min}, &out->life.abuse_delay);
  if (const Node* keepalive = section.Find("keepalive")) {
    ParseKeepalive(reader, *keepalive, section.PathOf("keepalive"), &out->keepalive);
  }
  if (const Node* http2 = section.Find("http2")) {
    ParseSession(reader, *http2, section.PathOf("http2"), &out->http2);
  }
  if (const Node* tls = section.Find("tls")) ParseListenerTls(reader, *tls, section.PathOf("tls"), &out->tls);
}

}  // namespace

void ParseListeners(Section& root, std::vector<proxy::ListenerOptions>* out) {
  std::map<std::string, std::string> addresses;  // canonical address -> path of its listener
  std::map<std::string, std::string> names;
  if (root.Require("listeners") == nullptr) return;
  const bool listed = root.Each("listeners", kListenersMax, [&](const Node& node, std::string path) {
    proxy::ListenerOptions listener;
    ParseListener(root.reader(), node, path, &listener);
    const std::string address = listener.address.ToString();
    const bool any_port = listener.address.kind() != net::Address::Kind::kUnix && listener.address.port() == 0;
    if (!listener.name.empty() && !any_port) {
      const auto [first, added] = addresses.emplace(address, path);
      if (!added) root.reader().Fail(node, path, Cat("address ", address, " is also that of ", first->second));
      if (added) {
        const auto [same, is_new] = names.emplace(listener.name, path);
        if (!is_new) {
          root.reader().Fail(node, path, Cat("name ", Shown(listener.name), " is also that of ", same->second));
        }
      }
    }
    out->push_back(std::move(listener));
  });
  if (listed && out->empty()) root.Fail("listeners", "is empty; at least one listener is needed");
}

}  // namespace sluice::config

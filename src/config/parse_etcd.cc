// etcd as a source: the servers and the keys that are meant, and the values that stand there.
#include <algorithm>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "discovery/option_table.h"
#include "upstream/option_table.h"

namespace sluice::config {
namespace {

bool IsVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// A writer to etcd must not reach the Unix sockets of this host.
bool IsSocketHere(const net::Address& address) { return address.kind() == net::Address::Kind::kUnix; }
constexpr std::string_view kNoSocket = " is a socket of one host, which others cannot mean; allowed: host:port";

void ParseServers(Section& section, std::vector<std::string>* out) {
  if (section.Require("servers") == nullptr) return;
  const bool listed = section.Each("servers", discovery::kEtcdServersMax, [&](const Node& node, std::string path) {
    const std::string* text = section.Scalar(node, path, "host:port");
    if (text == nullptr) return;
    auto address = net::Address::Parse(*text);
    if (!address.ok())
      section.reader().Fail(node, std::move(path), address.error().detail);
    else if (address->kind() == net::Address::Kind::kUnix || address->port() == 0)
      section.reader().Fail(node, std::move(path), Cat(Shown(*text), " is no server; allowed: host:port"));
    else if (std::find(out->begin(), out->end(), address->ToString()) != out->end())
      section.reader().Fail(node, std::move(path), Cat(Shown(*text), " is there twice"));
    else
      out->push_back(address->ToString());
  });
  if (listed && section.Find("servers")->items.empty()) section.Fail("servers", "is empty; allowed: host:port, ...");
}

// A name of a file.
void ParseFileName(Section& section, std::string_view key, std::string* out) {
  std::string name;
  if (!section.Text(key, &name)) return;
  if (name.empty()) return section.Fail(key, "is empty; the name of a file is needed");
  *out = section.FileAt(key, std::move(name), NamedFile::Use::kLater);
}

// Both or none.
void Pair(Section& section, std::string_view one, std::string_view other) {
  const bool has_one = section.Find(one) != nullptr, has_other = section.Find(other) != nullptr;
  if (has_one != has_other) section.Fail(has_one ? one : other, Cat("needs ", has_one ? other : one, " besides"));
}

base::Error Bad(std::string detail) { return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(detail)); }

base::Result<upstream::EndpointOptions> ParseJson(std::string_view value) {
  std::vector<ConfigError> errors;
  YamlTree tree;
  upstream::EndpointOptions endpoint;
  if (tree.Build(value, "value", &errors)) {
    Reader reader("value", nullptr);
    ParseEndpoint(reader, tree.root(), "", &endpoint);
    errors = reader.TakeErrors();
    // Without a name of its own it gets the key's, not the address.
    const auto& items = tree.root().items;
    bool named = false;
    for (size_t i = 0; i + 1 < items.size(); i += 2) named = named || items[i]->text == "name";
    if (!named) endpoint.name.clear();
  }
  if (errors.empty()) return endpoint;
  std::string told;
  for (const ConfigError& error : errors) {
    told += told.empty() ? "" : "; ";
    told += error.path.empty() ? error.message : Cat(error.path, ": ", error.message);
  }
  return Bad(std::move(told));
}

base::Result<upstream::EndpointOptions> ParsePlain(std::string_view value) {
  upstream::EndpointOptions endpoint;
  const size_t at = value.rfind('@');
  auto address = net::Address::Parse(value.substr(0, at));
  if (!address.ok()) return Bad(address.error().detail);
  if (address->port() == 0 && !IsSocketHere(*address))
    return Bad(Cat(Shown(value), ": port 0 cannot be connected to; allowed: [1, 65535]"));
  endpoint.address = std::move(*address);
  if (at == value.npos) return endpoint;
  const auto& weight = upstream::kEndpointOptions[0];
  static_assert(upstream::kEndpointOptions[0].key == "weight");
  const std::optional<double> parsed = ParseValue(value.substr(at + 1), weight.range);
  if (!parsed)
    return Bad(Cat("weight ", Shown(value.substr(at + 1)), " is not allowed; allowed: ", AllowedText(weight.range)));
  endpoint.weight = *parsed;
  return endpoint;
}

}  // namespace

void ParseEtcd(Section& section, discovery::EtcdOptions* out) {
  ParseServers(section, &out->servers);
  if (section.Require("prefix") != nullptr && section.Text("prefix", &out->prefix)) {
    const std::string& prefix = out->prefix;
    if (prefix.empty() || prefix.back() != '/' || prefix.size() > discovery::kEtcdPrefixBytesMax ||
        !IsVisible(prefix)) {
      section.Fail("prefix", Cat(Shown(prefix), " is no prefix of keys; allowed: 1 to ", discovery::kEtcdPrefixBytesMax,
                                 " visible ASCII characters, the last one /"));
    }
  }
  section.Map("tls", [&](Section& tls) {
    out->tls = true;
    ParseFileName(tls, "ca", &out->ca);
    ParseFileName(tls, "certificate", &out->certificate);
    ParseFileName(tls, "key", &out->key);
    Pair(tls, "certificate", "key");
    if (tls.Text("server_name", &out->server_name) && !IsVisible(out->server_name))
      tls.Fail("server_name", Cat(Shown(out->server_name), " is not a name"));
  });
  if (section.Text("user", &out->user) && out->user.empty()) section.Fail("user", "is empty");
  ParseFileName(section, "password_file", &out->password_file);
  Pair(section, "user", "password_file");
}

void ParseAnnounce(Section& root, std::vector<discovery::AnnounceOptions>* out) {
  UniqueNames keys;
  root.Each("announce", discovery::kAnnouncementsMax, [&](const Node& node, std::string path) {
    Section section(root.reader(), node, path);
    discovery::AnnounceOptions announce;
    ParseEndpointKeys(section, &announce.endpoint);
    if (IsSocketHere(announce.endpoint.address))
      section.Fail("address", Cat(Shown(announce.endpoint.address.ToString()), kNoSocket));
    section.Options(discovery::kAnnounceOptions, &announce);
    if (section.Require("etcd") != nullptr)
      section.Map("etcd", [&](Section& etcd) { ParseEtcd(etcd, &announce.etcd); });
    const std::string key = announce.etcd.prefix + announce.endpoint.name;
    if (!announce.endpoint.name.empty()) keys.Add(root.reader(), node, path, Cat("key ", Shown(key)), key);
    out->push_back(std::move(announce));
  });
}

base::Result<upstream::EndpointOptions> ParseEndpointValue(std::string_view name, std::string_view value) {
  while (!value.empty() && (value.back() == '\n' || value.back() == '\r' || value.back() == ' '))
    value.remove_suffix(1);
  if (value.empty()) return Bad("is empty; allowed: host:port, host:port@weight, {\"address\": \"host:port\", ...}");
  auto endpoint = value.front() == '{' ? ParseJson(value) : ParsePlain(value);
  if (!endpoint.ok()) return endpoint;
  if (IsSocketHere(endpoint->address)) return Bad(Cat(Shown(value), kNoSocket));
  if (!endpoint->name.empty()) return endpoint;
  if (name.empty() || name.size() > kNameBytesMax || !IsVisible(name))
    return Bad(Cat(Shown(name), " is not a name: 1 to ", kNameBytesMax, " visible ASCII characters without blanks"));
  endpoint->name = name;
  return endpoint;
}

}  // namespace sluice::config

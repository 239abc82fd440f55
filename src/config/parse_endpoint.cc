// Lists of endpoints: of a cluster, and in files of their own.
#include "config/config.h"
#include "config/file_text.h"
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "upstream/option_table.h"

namespace sluice::config {
namespace {

// Errors of a list that are told, so that a log line stays one.
constexpr size_t kErrorsTold = 5;

// False after reporting. `at` is where: the endpoint itself, or its key `address`.
bool ParseEndpointAddress(Reader& reader, const Node& at, const std::string& path, const std::string& text,
                          net::Address* out) {
  auto address = net::Address::Parse(text);
  if (!address.ok()) {
    reader.Fail(at, path,
                text.starts_with(kDnsScheme)
                    ? Cat(Shown(text),
                          ": it stands for a list, so it is only allowed as the only one of a cluster's "
                          "endpoints, without a name or weight, and without another source")
                    : address.error().detail);
    return false;
  }
  if (address->kind() != net::Address::Kind::kUnix && address->port() == 0) {
    reader.Fail(at, path, Cat(Shown(text), ": port 0 cannot be connected to; allowed: [1, 65535]"));
    return false;
  }
  *out = std::move(*address);
  return true;
}

}  // namespace

void ParseEndpoint(Reader& reader, const Node& node, const std::string& path, upstream::EndpointOptions* out) {
  if (node.kind == Node::Kind::kScalar) {
    if (ParseEndpointAddress(reader, node, path, node.text, &out->address)) out->name = out->address.ToString();
    return;
  }
  if (node.kind != Node::Kind::kMap) {
    reader.Fail(node, path, "is not an endpoint; allowed: host:port, or {address: host:port, name: ..., weight: ...}");
    return;
  }
  Section section(reader, node, path);
  ParseEndpointKeys(section, out);
}

void ParseEndpointKeys(Section& section, upstream::EndpointOptions* out) {
  std::string text;
  if (const Node* at = section.Require("address"); at != nullptr && section.Text("address", &text)) {
    if (ParseEndpointAddress(section.reader(), *at, section.PathOf("address"), text, &out->address)) {
      out->name = out->address.ToString();
    }
  }
  ParseName(section, "name", &out->name);
  section.Options(upstream::kEndpointOptions, out);
  ParseLocality(section, &out->locality);
}

void ParseLocality(Section& section, std::string* out) {
  std::string text;
  if (!section.Text("locality", &text)) return;
  if (upstream::IsLocality(text)) {
    *out = std::move(text);
  } else {
    section.Fail("locality",
                 Cat(Shown(text), " is not printable ASCII of at most ", upstream::kLocalityBytesMax, " bytes"));
  }
}

double ParseEndpoints(Section& section, std::vector<upstream::EndpointOptions>* out) {
  UniqueNames names;
  double weights = 0;
  section.Each("endpoints", upstream::kEndpointsMax, [&](const Node& node, std::string path) {
    upstream::EndpointOptions endpoint;
    ParseEndpoint(section.reader(), node, path, &endpoint);
    if (endpoint.name.empty()) return;
    names.Add(section.reader(), node, path, Cat("name ", Shown(endpoint.name)), endpoint.name);
    weights += endpoint.weight;
    out->push_back(std::move(endpoint));
  });
  return weights;
}

base::Result<std::vector<upstream::EndpointOptions>> LoadEndpoints(const std::string& path) {
  std::vector<ConfigError> errors;
  std::vector<upstream::EndpointOptions> endpoints;
  auto text = ReadNamedText(path);
  if (!text.ok()) return text.error();
  YamlTree tree;
  if (tree.Build(*text, path, &errors)) {
    Reader reader(path, nullptr);
    {
      Section root(reader, tree.root(), "");
      // What was cut off is no empty list.
      if (const Node* list = root.Require("endpoints"); list != nullptr && list->kind == Node::Kind::kNull)
        root.Fail("endpoints", "has nothing; allowed: a list, or [] for none");
      ParseEndpoints(root, &endpoints);
    }
    errors = reader.TakeErrors();
  }
  if (errors.empty()) return endpoints;
  std::string told;
  for (size_t i = 0; i < std::min(errors.size(), kErrorsTold); ++i) told += (i == 0 ? "" : "; ") + errors[i].ToString();
  if (errors.size() > kErrorsTold) told += Cat("; and ", errors.size() - kErrorsTold, " more");
  return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(told));
}

}  // namespace sluice::config

#include "config/xds_bootstrap.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <string>

#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

namespace pb = google::protobuf;
using discovery::XdsBootstrap;
using discovery::XdsNodeOptions;
using discovery::XdsServerOptions;

constexpr std::string_view kCredentials = "insecure, tls";

const pb::Value* Find(const pb::Struct& map, std::string_view key) {
  const auto it = map.fields().find(std::string(key));
  return it == map.fields().end() || it->second.kind_case() == pb::Value::kNullValue ? nullptr : &it->second;
}

class BootstrapReader {
 public:
  XdsBootstrap Read(const pb::Struct& root);
  const std::string& errors() const { return errors_; }

 private:
  void Fail(const std::string& path, const std::string& what) {
    errors_ += Cat(errors_.empty() ? "" : "; ", path, ": ", what);
  }
  const std::string* Text(const pb::Struct& map, std::string_view key, const std::string& path) {
    const pb::Value* value = Find(map, key);
    if (value == nullptr) return nullptr;
    if (value->kind_case() == pb::Value::kStringValue) return &value->string_value();
    Fail(Cat(path, key), "is no text");
    return nullptr;
  }
  void Text(const pb::Struct& map, std::string_view key, const std::string& path, std::string* out) {
    if (const std::string* text = Text(map, key, path)) *out = *text;
  }
  const pb::Struct* Map(const pb::Struct& map, std::string_view key, const std::string& path) {
    const pb::Value* value = Find(map, key);
    if (value == nullptr) return nullptr;
    if (value->kind_case() == pb::Value::kStructValue) return &value->struct_value();
    Fail(Cat(path, key), "is no object");
    return nullptr;
  }
  const pb::ListValue* List(const pb::Struct& map, std::string_view key, const std::string& path) {
    const pb::Value* value = Find(map, key);
    if (value == nullptr) return nullptr;
    if (value->kind_case() == pb::Value::kListValue) return &value->list_value();
    Fail(Cat(path, key), "is no list");
    return nullptr;
  }
  void ReadServer(const pb::Struct& map, const std::string& path, XdsServerOptions* out);
  void ReadCredentials(const pb::Struct& map, const std::string& path, XdsServerOptions* out);
  void ReadTls(const pb::Struct& map, const std::string& path, XdsServerOptions* out);
  void ReadNode(const pb::Struct& map, XdsNodeOptions* out);

  std::string errors_;
};

void BootstrapReader::ReadTls(const pb::Struct& map, const std::string& path, XdsServerOptions* out) {
  Text(map, "ca_certificate_file", path, &out->ca);
  Text(map, "certificate_file", path, &out->certificate);
  Text(map, "private_key_file", path, &out->key);
  if (out->certificate.empty() != out->key.empty())
    Fail(Cat(path, out->key.empty() ? "private_key_file" : "certificate_file"),
         "is missing; certificate_file and private_key_file are only of use together");
}

// The first of a type that is understood.
void BootstrapReader::ReadCredentials(const pb::Struct& map, const std::string& path, XdsServerOptions* out) {
  const pb::ListValue* list = List(map, "channel_creds", path);
  if (list == nullptr && Find(map, "channel_creds") != nullptr) return;
  std::string seen;
  for (int i = 0; list != nullptr && i < list->values_size(); ++i) {
    const std::string at = Cat(path, "channel_creds[", i, "]");
    if (list->values(i).kind_case() != pb::Value::kStructValue) return Fail(at, "is no object");
    const pb::Struct& one = list->values(i).struct_value();
    const std::string* type = Text(one, "type", at + ".");
    if (type == nullptr) return Fail(Cat(at, ".type"), Cat("is missing; allowed: ", kCredentials));
    if (*type == "insecure") return;
    if (*type == "tls") {
      out->tls = true;
      if (const pb::Struct* config = Map(one, "config", at + ".")) ReadTls(*config, at + ".config.", out);
      return;
    }
    seen += Cat(seen.empty() ? "" : ", ", Shown(*type));
  }
  Fail(Cat(path, "channel_creds"),
       Cat(seen.empty() ? "is missing" : Cat("has only ", seen), "; allowed: ", kCredentials));
}

void BootstrapReader::ReadServer(const pb::Struct& map, const std::string& path, XdsServerOptions* out) {
  Text(map, "server_uri", path, &out->uri);
  if (out->uri.empty()) Fail(Cat(path, "server_uri"), "is missing; host:port is needed");
  ReadCredentials(map, path, out);
  if (const pb::ListValue* features = List(map, "server_features", path)) {
    for (const pb::Value& feature : features->values())
      out->ignore_resource_deletion |= feature.string_value() == "ignore_resource_deletion";
  }
}

void BootstrapReader::ReadNode(const pb::Struct& map, XdsNodeOptions* out) {
  Text(map, "id", "node.", &out->id);
  Text(map, "cluster", "node.", &out->cluster);
  if (const pb::Struct* locality = Map(map, "locality", "node.")) {
    Text(*locality, "region", "node.locality.", &out->region);
    Text(*locality, "zone", "node.locality.", &out->zone);
    Text(*locality, "sub_zone", "node.locality.", &out->sub_zone);
  }
  if (const pb::Struct* metadata = Map(map, "metadata", "node.")) {
    pb::io::StringOutputStream stream(&out->metadata);
    pb::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // equal where the file says the same
    metadata->SerializeToCodedStream(&coded);
  }
}

XdsBootstrap BootstrapReader::Read(const pb::Struct& root) {
  XdsBootstrap out;
  const pb::ListValue* servers = List(root, "xds_servers", "");
  const int count = servers == nullptr ? 0 : servers->values_size();
  if (count == 0 && errors_.empty()) Fail("xds_servers", "is missing; at least one server is needed");
  if (count > static_cast<int>(discovery::kXdsServersMax)) {
    Fail("xds_servers", Cat(count, " servers; at most ", discovery::kXdsServersMax, " are allowed"));
    return out;
  }
  for (int i = 0; i < count; ++i) {
    const std::string path = Cat("xds_servers[", i, "]");
    if (servers->values(i).kind_case() == pb::Value::kStructValue)
      ReadServer(servers->values(i).struct_value(), path + ".", &out.servers.emplace_back());
    else
      Fail(path, "is no object");
  }
  if (const pb::Struct* node = Map(root, "node", "")) ReadNode(*node, &out.node);
  return out;
}

}  // namespace

base::Result<XdsBootstrap> ParseXdsBootstrap(std::string_view json) {
  const auto fail = [](std::string what) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(what));
  };
  if (json.size() > kBootstrapBytesMax) return fail("is longer than 1MiB");
  pb::Struct root;
  const auto status = pb::util::JsonStringToMessage(pb::StringPiece(json.data(), json.size()), &root);
  if (!status.ok()) {
    std::string why(status.message().data(), status.message().size());
    for (char& c : why) {
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    }
    return fail("is no JSON object: " + why.substr(0, 200));
  }
  BootstrapReader reader;
  XdsBootstrap bootstrap = reader.Read(root);
  if (!reader.errors().empty()) return fail(reader.errors());
  return bootstrap;
}

}  // namespace sluice::config

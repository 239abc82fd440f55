#include "config/config.h"

#include "config/file_text.h"
#include "config/parsers.h"
#include "config/section.h"
#include "config/text.h"
#include "config/yaml_tree.h"

namespace sluice::config {

std::string ConfigError::ToString() const {
  std::string out = file;
  if (line > 0) out += Cat(":", line, ":", column);
  if (!path.empty()) out += Cat(": ", path);
  out += Cat(": ", message);
  return out;
}

ParseResult ParseAndListKeys(std::string_view yaml, std::string_view file, std::set<std::string>* keys) {
  ParseResult result;
  const std::string name(file);
  YamlTree tree;
  if (!tree.Build(yaml, name, &result.errors)) return result;
  Reader reader(name, keys);
  {
    Section root(reader, tree.root(), "");
    ParseListeners(root, &result.config.listeners);
    ParseClusters(root, &result.config.clusters, &result.config.discovery);
    Descriptors descriptors;
    ParseDescriptorSet(root, &descriptors, &result.config.descriptor_set);
    ParseRoutes(root, result.config.clusters, descriptors, &result.config.routes);
    ParseProcess(root, &result.config);
    ParseXdsProcess(root, &result.config);
    ParseAnnounce(root, &result.config.announce);
  }  // reports unknown keys
  result.errors = reader.TakeErrors();
  if (!result.ok()) result.config = Config();  // half of one is of no use
  return result;
}

ParseResult Parse(std::string_view yaml, std::string_view file) { return ParseAndListKeys(yaml, file, nullptr); }

ParseResult Load(const std::string& path) {
  auto text = ReadText(path);
  if (text.ok()) {
    ParseResult result = Parse(*text, path);
    FindXdsBootstrap(path, &result);
    return result;
  }
  ParseResult failed;
  failed.errors.push_back(ConfigError{path, 0, 0, "", text.error().detail.substr(path.size() + 2)});
  return failed;
}

}  // namespace sluice::config

#include "config/config.h"

#include <cstdlib>

#include "config/config_tree.h"
#include "config/file_text.h"
#include "config/parsers.h"
#include "config/section.h"
#include "config/text.h"

namespace sluice::config {

Inputs SystemInputs() {
  return {[](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            return value == nullptr ? std::nullopt : std::optional<std::string>(value);
          },
          ReadNamedText};
}

ParseResult ParseAndListKeys(std::string_view yaml, std::string_view file, std::set<std::string>* keys,
                             const Inputs& inputs) {
  ParseResult result;
  const std::string name(file);
  const Variables variables =
      inputs.variables != nullptr ? inputs.variables : [](const std::string&) { return std::optional<std::string>(); };
  Reader reader(name, keys);
  ConfigTree tree(variables, inputs.file);
  if (tree.Build(yaml, name, reader)) {
    Section root(reader, tree.root(), "");
    root.Find(kIncludeKey);
    ParseListeners(root, &result.config.listeners);
    ParseClusters(root, &result.config.clusters, &result.config.discovery);
    Descriptors descriptors;
    ParseDescriptorSet(root, &descriptors, &result.config.descriptor_set);
    ParseJwt(root, &result.config.jwt);
    ParseRoutes(root, result.config.listeners, result.config.clusters, result.config.jwt, descriptors,
                &result.config.routes);
    ParseProcess(root, &result.config);
    ParseXdsProcess(root, &result.config);
    ParseAnnounce(root, &result.config.announce);
    if (reader.error_count() == 0) Advise(root, result.config);
  }  // reports unknown keys
  result.files = tree.files();
  result.errors = reader.TakeErrors();
  if (result.ok()) {
    result.warnings = reader.TakeWarnings();
    result.named = reader.TakeNamed();
    result.needs_xds = reader.TakeXds();
  }
  if (!result.ok()) result.config = Config();  // half of one is of no use
  return result;
}

ParseResult Parse(std::string_view yaml, std::string_view file, const Inputs& inputs) {
  return ParseAndListKeys(yaml, file, nullptr, inputs);
}

ParseResult Load(const std::string& path) {
  auto text = ReadText(path);
  if (text.ok()) {
    ParseResult result = Parse(*text, path, SystemInputs());
    FindXdsBootstrap(&result);
    return result;
  }
  ParseResult failed;
  failed.errors.push_back(ConfigError{path, 0, 0, "", text.error().detail.substr(path.size() + 2)});
  return failed;
}

}  // namespace sluice::config

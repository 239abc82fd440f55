#include "config/config.h"

#include <cerrno>
#include <cstring>
#include <fstream>

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
    ParseClusters(root, &result.config.clusters);
    Descriptors descriptors;
    ParseDescriptorSet(root, &descriptors, &result.config.descriptor_set);
    ParseRoutes(root, result.config.clusters, descriptors, &result.config.routes);
    ParseProcess(root, &result.config);
  }  // reports unknown keys
  result.errors = reader.TakeErrors();
  if (!result.ok()) result.config = Config();  // half of one is of no use
  return result;
}

ParseResult Parse(std::string_view yaml, std::string_view file) { return ParseAndListKeys(yaml, file, nullptr); }

ParseResult Load(const std::string& path) {
  ParseResult failed;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) {
    // One byte above the limit is enough for Parse to refuse it, also from a file without end.
    text.resize(kFileBytesMax + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
  }
  if (in.bad() || !in.is_open() || (in.fail() && !in.eof())) {
    const int error = errno;
    failed.errors.push_back(ConfigError{path, 0, 0, "", Cat("cannot be read: ", std::strerror(error))});
    return failed;
  }
  return Parse(text, path);
}

}  // namespace sluice::config

// ConfigTree: a configuration's own file and those that it includes, as one map.
//
//   include: [a.yaml, clusters/b.yaml]     relative to the file that says so
//
// It is as if what the included files say stood before what the file itself says, in their order: lists (listeners,
// clusters, routes, announce) are joined, every other key may stand in one file only. A file is included once. Anchors
// and aliases are of one file.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/section.h"
#include "config/yaml_tree.h"

namespace sluice::config {

// Files of a configuration, and files inside files.
inline constexpr size_t kFilesMax = 256;
inline constexpr size_t kIncludeDepthMax = 8;
// Bytes of all of them.
inline constexpr size_t kAllFilesBytesMax = 64 * 1024 * 1024;
inline constexpr std::string_view kIncludeKey = "include";

class ConfigTree {
 public:
  using ReadFile = std::function<base::Result<std::string>(const std::string& path)>;
  // `read`: empty if there may be no other files. Both must outlive the tree's Build.
  ConfigTree(const Variables& variables, const ReadFile& read) : variables_(variables), read_(read) {}

  // Reports to `reader`. False: a file could not be read, or is no YAML, so that the map is not whole.
  bool Build(std::string_view yaml, const std::string& file, Reader& reader);
  // The whole map, or what the file has in its place; with the key `include` of the file itself.
  const Node& root() const { return *root_; }
  // The names of the files, as they were opened, the configuration's own first.
  std::vector<std::string> files() const;

 private:
  // A file that is being read, and how it came to that.
  struct Visit {
    const Visit* by;   // null: the configuration's own file
    std::string path;  // as it is opened
    size_t depth;
  };

  bool Add(std::string_view yaml, const Visit& visit, Reader& reader);
  bool Include(const Node& list, const Visit& visit, Reader& reader);
  bool IncludeOne(const Node& item, const std::string& place, const Visit& visit, Reader& reader);
  void Merge(const Node& root, bool own, Reader& reader);
  const Node* Join(const Node& key, const Node& one, const Node& other, Reader& reader);

  const Variables& variables_;
  const ReadFile& read_;
  std::deque<YamlTree> trees_;                 // by SourceFile::order
  std::vector<std::string> files_;             // likewise
  std::map<std::string, std::string> places_;  // by path: where it is included
  size_t bytes_ = 0, nodes_ = 0;
  Node merged_;
  std::deque<Node> lists_;  // that several files have
  const Node* root_ = nullptr;
};

}  // namespace sluice::config

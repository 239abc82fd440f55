// YamlTree: YAML text as a bounded tree whose nodes know their line and column.
//
// Built on yaml-cpp's events, not its Node: Node forgets whether a scalar was quoted, hides that a key came
// twice, and follows aliases without a bound. Here an alias is a second pointer to its anchor's node, and a
// document whose aliases written out would exceed kNodesMax is an error at the alias that goes too far
// ("billion laughs").
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "config/config_error.h"
#include "config/expand.h"
#include "config/file_text.h"

namespace sluice::config {

// Of one line. The parser keeps the tokens of a line for as long as they may still turn out to be a key: 16 MiB of "["
// would cost gigabytes.
inline constexpr size_t kLineBytesMax = 1024 * 1024;
// Containers inside containers, aliases written out. The deepest legal key is at depth 5.
inline constexpr size_t kDepthMax = 32;
// Nodes, aliases written out: far above 100 clusters of 1000 endpoints.
inline constexpr size_t kNodesMax = 1'000'000;

// Bytes that variables may make the values of one file.
inline constexpr size_t kVariableBytesMax = 16 * 1024 * 1024;

// The file that a tree was made of.
struct SourceFile {
  std::string name;
  size_t order = 0;  // in which a configuration's files were read
};

struct Node {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;  // from 1
  int column = 0;
  bool key = false;    // of a map: no variable is replaced in it
  bool wrong = false;  // reported already: what else is wrong with it follows from that
  const SourceFile* file = nullptr;
  std::string text;                      // of a scalar
  const std::string* written = nullptr;  // its text before variables were replaced; null: it had none
  std::vector<const Node*> items;        // of a list; of a map: key, value, key, value
  size_t nodes = 1;                      // in the subtree, aliases written out
  size_t height = 0;                     // containers below and including this one
  bool complete = true;                  // false while its end has not been read: an alias to it would be endless
};

// The value of the key in a map; null: the key is absent, or `map` is no map.
const Node* ValueOf(const Node& map, std::string_view key);

class YamlTree {
 public:
  YamlTree() = default;
  YamlTree(const YamlTree&) = delete;
  YamlTree& operator=(const YamlTree&) = delete;

  // True, or false with one error appended (the parser cannot go on after a mistake in the syntax).
  bool Build(std::string_view yaml, const std::string& file, std::vector<ConfigError>* errors, size_t order = 0);
  // Replaces the variables in all values, once each. Calls fail(node, message) for each that is wrong, which keeps its
  // text.
  void ExpandAll(const Variables& variables, absl::FunctionRef<void(const Node&, std::string)> fail);
  // The document; a null node for an empty one.
  const Node& root() const { return *root_; }

 private:
  class Builder;
  SourceFile file_;  // the nodes point to it: a tree stays where it is
  std::deque<Node> nodes_;
  std::deque<std::string> written_;
  const Node* root_ = nullptr;
};

}  // namespace sluice::config

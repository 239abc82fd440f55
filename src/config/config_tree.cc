#include "config/config_tree.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

// Top-level keys that are joined where several files have them.
constexpr std::array<std::string_view, 4> kJoined = {"listeners", "clusters", "routes", "announce"};

std::string PlaceOf(const Node& node) { return Cat(node.file->name, ":", node.line, ":", node.column); }

// One spelling of a path, so that a file is known again; links are not followed.
std::string Normal(const std::string& path) { return std::filesystem::path(path).lexically_normal().string(); }

std::string Beside(const std::string& file, const std::string& name) {
  const size_t slash = file.rfind('/');
  return name.starts_with('/') || slash == file.npos ? name : Cat(std::string_view(file).substr(0, slash + 1), name);
}

// The same key before the item `end` of the map.
const Node* Before(const Node& map, size_t end) {
  for (size_t i = 0; i < end; i += 2) {
    if (map.items[i]->kind == Node::Kind::kScalar && map.items[i]->text == map.items[end]->text) return map.items[i];
  }
  return nullptr;
}

}  // namespace

bool ConfigTree::Build(std::string_view yaml, const std::string& file, Reader& reader) {
  merged_.kind = Node::Kind::kMap;
  const Visit own{nullptr, file, 0};
  places_[Normal(file)] = "the configuration's own file";
  const bool whole = Add(yaml, own, reader);
  const Node& root = trees_.front().root();
  merged_.line = root.line;
  merged_.column = root.column;
  merged_.file = root.file;
  // Of one file: the tree as it is, whatever it is.
  root_ = trees_.size() == 1 ? &root : &merged_;
  return whole;
}

std::vector<std::string> ConfigTree::files() const { return files_; }

bool ConfigTree::Add(std::string_view yaml, const Visit& visit, Reader& reader) {
  const size_t order = trees_.size();
  YamlTree& tree = trees_.emplace_back();
  files_.push_back(visit.path);
  std::vector<ConfigError> errors;
  if (!tree.Build(yaml, visit.path, &errors, order)) {
    for (ConfigError& error : errors) reader.Add(std::move(error), order);
    return false;
  }
  tree.ExpandAll(variables_, [&](const Node& at, std::string why) { reader.Fail(at, "", std::move(why)); });
  const Node& root = tree.root();
  nodes_ += root.nodes;
  if (nodes_ > kNodesMax) {
    reader.Fail(root, "", Cat("with this file more than ", kNodesMax, " values, aliases written out"));
    return false;
  }
  if (visit.by != nullptr && root.kind != Node::Kind::kMap && root.kind != Node::Kind::kNull) {
    reader.Fail(root, "", Cat(KindName(root.kind), "; a map (key: value) is allowed"));
    return false;
  }
  const Node* list = ValueOf(root, kIncludeKey);
  const bool whole = list == nullptr || Include(*list, visit, reader);
  Merge(root, visit.by == nullptr, reader);
  return whole;
}

bool ConfigTree::Include(const Node& list, const Visit& visit, Reader& reader) {
  if (list.kind == Node::Kind::kNull) return true;
  const auto fail = [&](std::string why) {
    reader.Fail(list, std::string(kIncludeKey), std::move(why));
    return false;
  };
  if (list.kind != Node::Kind::kList) return fail(Cat(KindName(list.kind), "; a list of files is allowed"));
  if (list.items.empty()) return true;
  if (read_ == nullptr) return fail("no other files are read here");
  if (visit.depth == kIncludeDepthMax) return fail(Cat("files inside files deeper than ", kIncludeDepthMax));
  bool whole = true;
  for (size_t i = 0; i < list.items.size(); ++i) {
    whole = IncludeOne(*list.items[i], Cat(kIncludeKey, "[", i, "]"), visit, reader) && whole;
  }
  return whole;
}

bool ConfigTree::IncludeOne(const Node& item, const std::string& place, const Visit& visit, Reader& reader) {
  const auto fail = [&](std::string why) {
    reader.Fail(item, place, std::move(why));
    return false;
  };
  if (item.wrong) return false;
  if (item.kind != Node::Kind::kScalar) return fail(Cat(KindName(item.kind), "; the name of a file is allowed"));
  if (item.text.empty() || item.text.size() > kTextBytesMax)
    return fail(Cat(Shown(item.text), " is not the name of a file"));
  const Visit inner{&visit, Beside(visit.path, item.text), visit.depth + 1};
  const std::string normal = Normal(inner.path);
  std::string chain = inner.path;
  bool cycle = false;
  for (const Visit* outer = &visit; outer != nullptr; outer = outer->by) {
    chain = Cat(outer->path, " -> ", chain);
    cycle = cycle || Normal(outer->path) == normal;
  }
  if (cycle) return fail(Cat("a circle of files: ", chain));
  const auto [first, added] = places_.emplace(normal, PlaceOf(item));
  if (!added) return fail(Cat(Shown(item.text), " is included already, at ", first->second));
  if (files_.size() >= kFilesMax) return fail(Cat("more than ", kFilesMax, " files"));
  auto text = read_(inner.path);
  if (!text.ok()) return fail(text.error().detail);
  bytes_ += text->size();
  if (bytes_ > kAllFilesBytesMax) return fail("with this file more than 64MiB are included");
  return Add(*text, inner, reader);
}

// Takes the keys of one file into the whole.
void ConfigTree::Merge(const Node& root, bool own, Reader& reader) {
  if (root.kind != Node::Kind::kMap) return;
  for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const Node& key = *root.items[i];
    if (key.kind == Node::Kind::kScalar && key.text == kIncludeKey && !own) continue;
    const auto& items = merged_.items;
    size_t other = 0;
    while (other < items.size() && (key.kind != Node::Kind::kScalar || items[other]->text != key.text)) other += 2;
    // Twice in one file is found where keys are read.
    if (other >= items.size() || items[other]->file == key.file) {
      merged_.items.push_back(&key);
      merged_.items.push_back(root.items[i + 1]);
    } else if (const Node* twice = Before(root, i)) {
      reader.Fail(key, key.text, Cat("stands in ", PlaceOf(*twice), " too"));
    } else if (std::find(kJoined.begin(), kJoined.end(), key.text) == kJoined.end()) {
      reader.Fail(key, key.text, Cat("stands in ", PlaceOf(*items[other]), " too; only one file may have it"));
    } else {
      merged_.items[other + 1] = Join(key, *items[other + 1], *root.items[i + 1], reader);
    }
  }
}

// The items of both; a value that is neither a list nor nothing is reported.
const Node* ConfigTree::Join(const Node& key, const Node& one, const Node& other, Reader& reader) {
  if (other.kind == Node::Kind::kNull) return &one;
  if (one.kind == Node::Kind::kNull) return &other;
  for (const Node* value : {&one, &other}) {
    if (value->kind == Node::Kind::kList) continue;
    reader.Fail(*value, key.text, Cat(KindName(value->kind), "; a list is allowed"));
    return &one;
  }
  Node& list = lists_.emplace_back(one);
  list.items.insert(list.items.end(), other.items.begin(), other.items.end());
  return &list;
}

}  // namespace sluice::config

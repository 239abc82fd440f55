#include "config/dump_diff.h"

#include <algorithm>
#include <map>

#include "config/dump_writer.h"
#include "config/text.h"
#include "config/yaml_tree.h"

namespace sluice::config {
namespace {

constexpr size_t kOrderShownMax = 20;  // where only their order differs

using Kind = Node::Kind;

// For people: quoted where it would be misread.
std::string Scalar(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:").find(c) != std::string_view::npos;
  });
  return plain ? text : DumpWriter::Quoted(text);
}

// In one line.
std::string Flat(const Node& node) {
  if (node.kind == Kind::kScalar) return Scalar(node.text);
  if (node.kind == Kind::kNull) return "";
  const bool map = node.kind == Kind::kMap;
  std::string out;
  for (size_t i = 0; i < node.items.size(); ++i) {
    out += i == 0 ? "" : map && i % 2 == 1 ? ": " : ", ";
    out += map && i % 2 == 0 ? node.items[i]->text : Flat(*node.items[i]);
  }
  return map ? Cat("{", out, "}") : Cat("[", out, "]");
}

// A list of maps, each of which has a name of its own; an empty list is one too.
bool IsNamed(const Node& list) {
  std::vector<std::string_view> names;
  for (const Node* item : list.items) {
    const Node* name = ValueOf(*item, "name");
    if (name == nullptr || name->kind != Kind::kScalar) return false;
    names.push_back(name->text);
  }
  std::sort(names.begin(), names.end());
  return list.kind == Kind::kList && std::adjacent_find(names.begin(), names.end()) == names.end();
}

class Differ {
 public:
  void Compare(const std::string& path, const Node* before, const Node* after) {
    if (before == nullptr || after == nullptr) return OnlyOne(path, before, after);
    if (before->kind == Kind::kMap && after->kind == Kind::kMap) return CompareMaps(path, *before, *after);
    if (IsNamed(*before) && IsNamed(*after)) return CompareLists(path, *before, *after);
    const std::string one = Flat(*before), other = Flat(*after);
    if (one == other) return;
    Line('-', path, one);
    Line('+', path, other);
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  void Line(char sign, const std::string& path, const std::string& value) {
    lines_.push_back(Cat(std::string_view(&sign, 1), " ", path, value.empty() ? "" : ": ", value));
  }

  // A key of one side: each value below it.
  void OnlyOne(const std::string& path, const Node* before, const Node* after) {
    const Node& node = before != nullptr ? *before : *after;
    if (node.kind != Kind::kMap) return Line(before != nullptr ? '-' : '+', path, Flat(node));
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const Node* value = node.items[i + 1];
      OnlyOne(Cat(path, ".", node.items[i]->text), before != nullptr ? value : nullptr,
              before != nullptr ? nullptr : value);
    }
  }

  void CompareMaps(const std::string& path, const Node& before, const Node& after) {
    const auto below = [&](const Node& key) { return path.empty() ? key.text : Cat(path, ".", key.text); };
    for (size_t i = 0; i + 1 < before.items.size(); i += 2) {
      Compare(below(*before.items[i]), before.items[i + 1], ValueOf(after, before.items[i]->text));
    }
    for (size_t i = 0; i + 1 < after.items.size(); i += 2) {
      if (ValueOf(before, after.items[i]->text) == nullptr)
        Compare(below(*after.items[i]), nullptr, after.items[i + 1]);
    }
  }

  using ByName = std::map<std::string_view, const Node*>;
  static ByName NamesOf(const Node& list) {
    ByName names;
    for (const Node* item : list.items) names.emplace(ValueOf(*item, "name")->text, item);
    return names;
  }

  // The names that `others` has too, in the order of the list.
  static std::vector<std::string_view> Shared(const Node& list, const ByName& others) {
    std::vector<std::string_view> names;
    for (const Node* item : list.items) {
      const std::string_view name = ValueOf(*item, "name")->text;
      if (others.contains(name)) names.push_back(name);
    }
    return names;
  }

  static std::string Order(std::vector<std::string_view> names) {
    const bool cut = names.size() > kOrderShownMax;
    if (cut) names.resize(kOrderShownMax);
    return Join(names) + (cut ? ", ..." : "");
  }

  void Item(char sign, const std::string& path, const Node& item) {
    const Node* address = ValueOf(item, "address");
    Line(sign, Cat(path, "[", Scalar(ValueOf(item, "name")->text), "]"), address == nullptr ? "" : Flat(*address));
  }

  void CompareLists(const std::string& path, const Node& before, const Node& after) {
    const ByName old_names = NamesOf(before), new_names = NamesOf(after);
    for (const Node* item : before.items) {
      const std::string& name = ValueOf(*item, "name")->text;
      if (const auto other = new_names.find(name); other != new_names.end())
        Compare(Cat(path, "[", Scalar(name), "]"), item, other->second);
      else
        Item('-', path, *item);
    }
    for (const Node* item : after.items) {
      if (!old_names.contains(ValueOf(*item, "name")->text)) Item('+', path, *item);
    }
    const auto old_order = Shared(before, new_names), new_order = Shared(after, old_names);
    if (old_order == new_order) return;
    Line('-', path + " in the order", Order(old_order));
    Line('+', path + " in the order", Order(new_order));
  }

  std::vector<std::string> lines_;
};

}  // namespace

base::Result<std::vector<std::string>> DiffDumps(std::string_view before, std::string_view after) {
  YamlTree trees[2];
  std::vector<ConfigError> errors;
  if (!trees[0].Build(before, "before", &errors) || !trees[1].Build(after, "after", &errors))
    return base::MakeError(base::ErrorKind::kInvalidArgument, errors.front().ToString());
  for (const YamlTree& tree : trees) {
    if (tree.root().kind != Kind::kMap && tree.root().kind != Kind::kNull)
      return base::MakeError(base::ErrorKind::kInvalidArgument, "is no map of keys");
  }
  Differ differ;
  differ.Compare("", &trees[0].root(), &trees[1].root());
  return differ.Take();
}

}  // namespace sluice::config

// Section: one map of the YAML tree, read key by key into an option struct; a key that is not asked for
// is an unknown key.
//
//   Section section(reader, node, "log");
//   section.Options(kLogOptions, &options);             // absent: the default stays
//   section.Choice("level", kLogLevels, &options.level);
//
// Every getter leaves *out alone if the key is absent or wrong, and reports the latter. Keys left over are
// reported by the destructor. One thread; the tree and the reader must outlive it.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/option.h"
#include "config/named_file.h"
#include "config/yaml_tree.h"

namespace sluice::config {

// Errors kept of one parse; the rest is only counted.
inline constexpr size_t kErrorsMax = 1000;
// Bytes of any text value.
inline constexpr size_t kTextBytesMax = 4096;

// "a list", for messages.
std::string_view KindName(Node::Kind kind);

// What is common to the sections of one parse: the errors so far, and the keys asked for.
class Reader {
 public:
  // `known`, if not null, collects each key asked for as a pattern: "clusters[].name".
  Reader(std::string file, std::set<std::string>* known) : file_(std::move(file)), known_(known) {}

  void Fail(const Node& at, std::string path, std::string message);
  void Know(const std::string& path);
  // What is legal and unwise.
  void Warn(const Node& at, std::string path, std::string message);
  // The file that a key names.
  void Name(const Node& at, std::string path, std::string file, NamedFile::Use use);
  // A section that needs the control plane of xDS.
  void NeedXds(const Node& at, std::string path);
  // What was found wrong before there was a tree. `order`: of its file.
  void Add(ConfigError error, size_t order);
  // No more errors are kept: a message need not be made with care.
  bool full() const { return errors_.size() >= kErrorsMax; }
  size_t error_count() const { return errors_.size() + not_kept_; }
  // Those found, in the order of the file.
  std::vector<ConfigError> TakeErrors();
  // In the order of the file, as the next.
  std::vector<ConfigError> TakeWarnings();
  std::vector<NamedFile> TakeNamed();
  // The first section that needs the control plane, without a message; nullopt: none does.
  std::optional<ConfigError> TakeXds();

 private:
  std::string file_;
  std::set<std::string>* known_;
  struct Placed {
    size_t order;
    ConfigError error;
  };
  // By their place, those of one place in the order in which they came.
  static void Insert(Placed placed, std::vector<Placed>* out);
  Placed PlaceAt(const Node& at, std::string path, std::string message) const;

  std::vector<Placed> errors_;
  std::vector<Placed> warnings_;
  struct Named {
    std::string file;
    NamedFile::Use use;
    Placed placed;
  };
  std::vector<Named> named_;
  std::vector<Placed> xds_;
  size_t not_kept_ = 0;
};

class Section {
 public:
  // A null node is an empty map (a section whose keys are all commented out); anything else but a map is an
  // error.
  Section(Reader& reader, const Node& node, std::string path);
  ~Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  // The value of the key, or null. Marks the key as known, as do all below.
  const Node* Find(std::string_view key);
  // Find, and an error if the key is absent.
  const Node* Require(std::string_view key);

  // Each key of the table that is there.
  template <typename S, size_t N>
  void Options(const base::Option<S> (&table)[N], S* out) {
    for (const base::Option<S>& option : table) {
      if (const std::optional<double> value = Read(option.key, option.range)) option.Set(*value, out);
    }
  }
  // Calls fn(Section&) with the map at the key, if it is there.
  template <std::invocable<Section&> Fn>
  void Map(std::string_view key, Fn fn) {
    if (const Node* node = Find(key)) {
      Section section(reader_, *node, PathOf(key));
      fn(section);
    }
  }
  // A map that has the keys of the table and no others.
  template <typename S, size_t N>
  void Map(std::string_view key, const base::Option<S> (&table)[N], S* out) {
    Map(key, [&](Section& section) { section.Options(table, out); });
  }
  void Bool(std::string_view key, bool* out) {
    if (const std::optional<double> value = Read(key, {})) *out = *value != 0;
  }
  void Mode(std::string_view key, uint32_t* out);
  // True if the key is there and its text was stored.
  bool Text(std::string_view key, std::string* out);
  // `names`: of the values of E, in their order; of values at the end there may be none.
  template <typename E>
  void Choice(std::string_view key, std::span<const std::string_view> names, E* out) {
    if (const int chosen = ReadChoice(key, names); chosen >= 0) *out = static_cast<E>(chosen);
  }
  // Calls fn(item, "path[i]") for each item of a list; a null is an empty list. False if the key is absent or
  // no list.
  bool Each(std::string_view key, size_t items_max, absl::FunctionRef<void(const Node&, std::string)> fn);

  // A file named at the key: a relative name is looked for beside the file in which the key stands.
  std::string Beside(std::string_view key, std::string name) const;
  // The same, and errors that name the file can be given its place (check_files.h).
  std::string FileAt(std::string_view key, std::string name, NamedFile::Use use);
  // The text of a file that the process writes; a relative name is one of its working directory.
  void WrittenFile(std::string_view key, std::string* out);

  // The scalar of a node that is none of the above, or null after reporting that it is something else.
  const std::string* Scalar(const Node& node, const std::string& path, std::string_view allowed);

  // A key that an earlier version had: an error with `message`, which says what is written in its place, if it is
  // there.
  void Gone(std::string_view key, std::string message);
  // Reports at the key's value, or at the section if the key is absent.
  void Fail(std::string_view key, std::string message);
  void Warn(std::string_view key, std::string message);
  std::string PathOf(std::string_view key) const;
  const std::string& path() const { return path_; }
  const Node& node() const { return node_; }
  Reader& reader() { return reader_; }

 private:
  // The scalar of the key, or null if it is absent or (reported) no scalar.
  const std::string* FindScalar(std::string_view key, std::string_view allowed);
  std::optional<double> Read(std::string_view key, const base::OptionRange& range);
  int ReadChoice(std::string_view key, std::span<const std::string_view> names);
  const Node* Lookup(std::string_view key) const;
  void CheckKeys();
  void ReportUnknown();

  Reader& reader_;
  const Node& node_;
  const std::string path_;
  std::vector<std::string_view> asked_;
};

}  // namespace sluice::config

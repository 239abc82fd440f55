// Section: one map of the YAML tree, read key by key into an option struct; what no one asked for is an
// unknown key.
//
//   Section section(reader, node, "log");
//   section.Choice("level", kLevels, &options.level);   // absent: *out keeps its default
//   section.Text("path", &options.path);
//
// Every getter leaves *out alone if the key is absent or wrong, and reports the latter. Keys left over are
// reported by the destructor. One thread; the tree and the reader must outlive it.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "config/yaml_tree.h"

namespace sluice::config {

// Errors kept of one parse; the rest is only counted.
inline constexpr size_t kErrorsMax = 1000;
// Bytes of any text value.
inline constexpr size_t kTextBytesMax = 4096;

// What is common to the sections of one parse: the errors so far, and the keys asked for.
class Reader {
 public:
  // `known`, if not null, collects each key asked for as a pattern: "clusters[].name".
  Reader(std::string file, std::set<std::string>* known) : file_(std::move(file)), known_(known) {}

  void Fail(const Node& at, std::string path, std::string message);
  void Know(const std::string& path);
  // A file named in the configuration: a relative name is looked for beside the configuration's own file.
  std::string Beside(std::string name) const;
  // No more errors are kept: a message need not be made with care.
  bool full() const { return errors_.size() >= kErrorsMax; }
  size_t error_count() const { return errors_.size() + not_kept_; }
  // Those found, in the order of the file.
  std::vector<ConfigError> TakeErrors();

 private:
  std::string file_;
  std::set<std::string>* known_;
  std::vector<ConfigError> errors_;
  size_t not_kept_ = 0;
};

template <typename T>
struct Range {
  T min;
  T max;
};

template <typename E>
using Choices = std::span<const std::pair<std::string_view, E>>;

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

  void Bool(std::string_view key, bool* out);
  template <std::unsigned_integral T>
  void Number(std::string_view key, Range<T> range, T* out) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t value = *out;
    ReadNumber(key, {range.min, range.max}, &value);
    *out = static_cast<T>(value);
  }
  template <std::unsigned_integral T>
  void Bytes(std::string_view key, Range<T> range, T* out) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t value = *out;
    ReadBytes(key, {range.min, range.max}, &value);
    *out = static_cast<T>(value);
  }
  void Decimal(std::string_view key, Range<double> range, double* out);
  // 0, which means none, or a number in the range.
  void DecimalOrZero(std::string_view key, Range<double> range, double* out);
  void Duration(std::string_view key, Range<std::chrono::milliseconds> range, std::chrono::milliseconds* out);
  void Mode(std::string_view key, uint32_t* out);
  // True if the key is there and its text was stored.
  bool Text(std::string_view key, std::string* out);
  template <typename E>
  void Choice(std::string_view key, Choices<E> choices, E* out) {
    std::vector<std::string_view> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    const int chosen = ReadChoice(key, names);
    if (chosen >= 0) *out = choices[static_cast<size_t>(chosen)].second;
  }
  // Calls fn(item, "path[i]") for each item of a list; a null is an empty list. False if the key is absent or
  // no list.
  bool Each(std::string_view key, size_t items_max, absl::FunctionRef<void(const Node&, std::string)> fn);

  // The scalar of a node that is none of the above, or null after reporting that it is something else.
  const std::string* Scalar(const Node& node, const std::string& path, std::string_view allowed);

  // Reports at the key's value, or at the section if the key is absent.
  void Fail(std::string_view key, std::string message);
  std::string PathOf(std::string_view key) const;
  const std::string& path() const { return path_; }
  const Node& node() const { return node_; }
  Reader& reader() { return reader_; }

 private:
  // The scalar of the key, or null if it is absent or (reported) no scalar.
  const std::string* FindScalar(std::string_view key, std::string_view allowed);
  void ReadNumber(std::string_view key, Range<uint64_t> range, uint64_t* out);
  void ReadBytes(std::string_view key, Range<uint64_t> range, uint64_t* out);
  void ReadDecimal(std::string_view key, Range<double> range, bool or_zero, double* out);
  int ReadChoice(std::string_view key, const std::vector<std::string_view>& names);
  const Node* Lookup(std::string_view key) const;
  void CheckKeys();
  void ReportUnknown();

  Reader& reader_;
  const Node& node_;
  const std::string path_;
  std::vector<std::string_view> asked_;
};

}  // namespace sluice::config

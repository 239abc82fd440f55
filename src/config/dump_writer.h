// DumpWriter: YAML key by key, from the tables and structs that a Section reads into.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/option.h"
#include "config/values.h"

namespace sluice::config {

class DumpWriter {
 public:
  // Names of files that are relative are written as below `folder`; empty: as they are.
  explicit DumpWriter(std::string folder, bool hide_secrets = false)
      : folder_(std::move(folder)), hide_secrets_(hide_secrets) {}

  template <typename S, size_t N>
  void Options(const base::Option<S> (&table)[N], const S& options) {
    for (const base::Option<S>& option : table) {
      Line(option.key, FormatValue(option.Get(options), option.range.kind));
    }
  }
  template <std::invocable Fn>
  void Map(std::string_view key, Fn fn) {
    Line(key, "");
    indent_ += 2;
    fn();
    indent_ -= 2;
  }
  template <typename S, size_t N>
  void Map(std::string_view key, const base::Option<S> (&table)[N], const S& options) {
    Map(key, [&] { Options(table, options); });
  }
  // A list of maps, each written by fn(item).
  template <typename Items, typename Fn>
  void Each(std::string_view key, const Items& items, Fn fn) {
    if (items.empty()) return Line(key, "[]");
    Line(key, "");
    indent_ += 4;
    for (const auto& item : items) {
      dash_ = true;
      fn(item);
    }
    indent_ -= 4;
  }
  void Texts(std::string_view key, std::span<const std::string> texts);
  void Text(std::string_view key, std::string_view text) { Line(key, Quoted(text)); }
  // Where secrets are hidden: a mark that tells two of them apart.
  void Secret(std::string_view key, std::string_view text);
  void File(std::string_view key, const std::string& path);
  // The same, where none is left out.
  void SomeFile(std::string_view key, const std::string& path) {
    if (!path.empty()) File(key, path);
  }
  template <typename E>
  void Choice(std::string_view key, std::span<const std::string_view> names, E value) {
    Line(key, Quoted(names[static_cast<size_t>(value)]));
  }
  // `value`: YAML; empty: what follows is indented below the key.
  void Line(std::string_view key, std::string_view value);
  void Comment(std::string_view text);

  // A scalar that is read as `text`.
  static std::string Quoted(std::string_view text);
  std::string Take() { return std::move(out_); }

 private:
  const std::string folder_;
  const bool hide_secrets_;
  std::string out_;
  size_t indent_ = 0;
  bool dash_ = false;  // the next line begins an item
};

}  // namespace sluice::config

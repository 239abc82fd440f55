#include "config/section.h"

#include <algorithm>
#include <tuple>

#include "config/suggest.h"
#include "config/text.h"
#include "config/values.h"

namespace sluice::config {
namespace {

// "clusters[12].name" -> "clusters[].name"
std::string Pattern(const std::string& path) {
  std::string out;
  bool inside = false;
  for (char c : path) {
    if (c == ']') inside = false;
    if (!inside) out += c;
    if (c == '[') inside = true;
  }
  return out;
}

}  // namespace

std::string_view KindName(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull:
      return "no value";
    case Node::Kind::kScalar:
      return "a single value";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return "";
}

Reader::Placed Reader::PlaceAt(const Node& at, std::string path, std::string message) const {
  if (at.written != nullptr) message += Cat(" (the file says ", Shown(*at.written), ")");
  return {at.file != nullptr ? at.file->order : 0,
          {at.file != nullptr ? at.file->name : file_, at.line, at.column, std::move(path), std::move(message)}};
}

void Reader::Insert(Placed placed, std::vector<Placed>* out) {
  const auto place = std::upper_bound(out->begin(), out->end(), placed, [](const Placed& a, const Placed& b) {
    return std::tuple(a.order, a.error.line, a.error.column) < std::tuple(b.order, b.error.line, b.error.column);
  });
  out->insert(place, std::move(placed));
}

void Reader::Fail(const Node& at, std::string path, std::string message) {
  if (at.wrong) return;
  Placed placed = PlaceAt(at, std::move(path), std::move(message));
  Add(std::move(placed.error), placed.order);
}

void Reader::Add(ConfigError error, size_t order) {
  if (errors_.size() < kErrorsMax)
    Insert({order, std::move(error)}, &errors_);
  else
    ++not_kept_;
}

void Reader::Warn(const Node& at, std::string path, std::string message) {
  if (warnings_.size() < kErrorsMax) Insert(PlaceAt(at, std::move(path), std::move(message)), &warnings_);
}

void Reader::Name(const Node& at, std::string path, std::string file, NamedFile::Use use) {
  named_.push_back({std::move(file), use, PlaceAt(at, std::move(path), "")});
}

void Reader::NeedXds(const Node& at, std::string path) { Insert(PlaceAt(at, std::move(path), ""), &xds_); }

std::optional<ConfigError> Reader::TakeXds() {
  return xds_.empty() ? std::nullopt : std::optional(std::move(xds_.front().error));
}

void Reader::Know(const std::string& path) {
  if (known_ != nullptr) known_->insert(Pattern(path));
}

std::vector<ConfigError> Reader::TakeErrors() {
  std::vector<ConfigError> out;
  for (Placed& placed : errors_) out.push_back(std::move(placed.error));
  if (not_kept_ > 0) out.push_back({file_, 0, 0, "", Cat("and ", not_kept_, " more errors, not shown")});
  return out;
}

std::vector<ConfigError> Reader::TakeWarnings() {
  std::vector<ConfigError> out;
  for (Placed& placed : warnings_) out.push_back(std::move(placed.error));
  return out;
}

std::vector<NamedFile> Reader::TakeNamed() {
  const auto place = [](const Named& n) {
    return std::tuple(n.placed.order, n.placed.error.line, n.placed.error.column);
  };
  std::stable_sort(named_.begin(), named_.end(), [&](const Named& a, const Named& b) { return place(a) < place(b); });
  std::vector<NamedFile> out;
  for (Named& named : named_) out.push_back({std::move(named.file), named.use, std::move(named.placed.error)});
  return out;
}

Section::Section(Reader& reader, const Node& node, std::string path)
    : reader_(reader), node_(node), path_(std::move(path)) {
  if (node.kind == Node::Kind::kMap) {
    CheckKeys();
  } else if (node.kind != Node::Kind::kNull) {
    reader_.Fail(node, path_, Cat(KindName(node.kind), "; a map (key: value) is allowed"));
  }
}

Section::~Section() { ReportUnknown(); }

// Duplicates would make a reader of the file and the program see different values.
void Section::CheckKeys() {
  std::set<std::string_view> seen;
  for (size_t i = 0; i + 1 < node_.items.size(); i += 2) {
    const Node& key = *node_.items[i];
    if (key.kind != Node::Kind::kScalar) {
      // As in `endpoints: [[::1]:7070]`.
      const bool address = key.kind == Node::Kind::kList && key.items.size() == 1 &&
                           key.items[0]->kind == Node::Kind::kScalar &&
                           key.items[0]->text.find(':') != std::string::npos;
      reader_.Fail(key, path_,
                   Cat(KindName(key.kind), " as a key; a word is allowed",
                       address ? "; an IPv6 address is written in quotes: \"[::1]:7070\"" : ""));
    } else if (!seen.insert(key.text).second) {
      reader_.Fail(key, PathOf(key.text), "the key is there twice");
    }
  }
}

void Section::ReportUnknown() {
  for (size_t i = 0; i + 1 < node_.items.size() && node_.kind == Node::Kind::kMap; i += 2) {
    const Node& key = *node_.items[i];
    if (key.kind != Node::Kind::kScalar) continue;
    if (std::find(asked_.begin(), asked_.end(), key.text) != asked_.end()) continue;
    const std::string_view near = reader_.full() ? "" : Suggest(key.text, asked_);
    std::string help = near.empty() ? Cat("; allowed: ", Join(asked_)) : Cat("; did you mean \"", near, "\"?");
    reader_.Fail(key, PathOf(key.text), "unknown key" + help);
  }
}

std::string Section::PathOf(std::string_view key) const {
  // A hostile key must not fill the log; legal ones are short.
  std::string shown = Shown(key);
  shown = shown.substr(1, shown.size() - 2);
  return path_.empty() ? shown : Cat(path_, ".", shown);
}

const Node* Section::Lookup(std::string_view key) const {
  if (node_.kind != Node::Kind::kMap) return nullptr;
  for (size_t i = 0; i + 1 < node_.items.size(); i += 2) {
    const Node& name = *node_.items[i];
    if (name.kind == Node::Kind::kScalar && name.text == key) return node_.items[i + 1];
  }
  return nullptr;
}

void Section::Gone(std::string_view key, std::string message) {
  if (Lookup(key) == nullptr) return;
  asked_.push_back(key);
  Fail(key, std::move(message));
}

const Node* Section::Find(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.push_back(key);
  reader_.Know(PathOf(key));
  return Lookup(key);
}

const Node* Section::Require(std::string_view key) {
  const Node* value = Find(key);
  const bool map = node_.kind == Node::Kind::kMap || node_.kind == Node::Kind::kNull;  // else reported already
  if (value == nullptr && map) reader_.Fail(node_, PathOf(key), "is missing");
  return value;
}

std::string Section::Beside(std::string_view key, std::string name) const {
  const Node* value = Lookup(key);
  const Node& at = value != nullptr ? *value : node_;
  const std::string_view file = at.file != nullptr ? std::string_view(at.file->name) : std::string_view();
  const size_t slash = file.rfind('/');
  if (name.empty() || name[0] == '/' || slash == file.npos) return name;
  return Cat(file.substr(0, slash + 1), name);
}

std::string Section::FileAt(std::string_view key, std::string name, NamedFile::Use use) {
  std::string file = Beside(key, std::move(name));
  const Node* value = Lookup(key);
  if (value != nullptr && !file.empty()) reader_.Name(*value, PathOf(key), file, use);
  return file;
}

void Section::WrittenFile(std::string_view key, std::string* out) {
  if (Text(key, out) && !out->empty()) reader_.Name(*Lookup(key), PathOf(key), *out, NamedFile::Use::kWritten);
}

void Section::Warn(std::string_view key, std::string message) {
  const Node* value = Lookup(key);
  reader_.Warn(value != nullptr ? *value : node_, PathOf(key), std::move(message));
}

void Section::Fail(std::string_view key, std::string message) {
  const Node* value = Lookup(key);
  reader_.Fail(value != nullptr ? *value : node_, PathOf(key), std::move(message));
}

const std::string* Section::Scalar(const Node& node, const std::string& path, std::string_view allowed) {
  if (node.kind == Node::Kind::kScalar) return &node.text;
  reader_.Fail(node, path, Cat(KindName(node.kind), "; allowed: ", allowed));
  return nullptr;
}

const std::string* Section::FindScalar(std::string_view key, std::string_view allowed) {
  const Node* node = Find(key);
  return node == nullptr ? nullptr : Scalar(*node, PathOf(key), allowed);
}

std::optional<double> Section::Read(std::string_view key, const base::OptionRange& range) {
  const std::string allowed = AllowedText(range);
  const std::string* text = FindScalar(key, allowed);
  if (text == nullptr) return std::nullopt;
  const std::optional<double> value = ParseValue(*text, range);
  if (!value)
    Fail(key, Cat(Shown(*text), range.kind == base::OptionKind::kBool ? " is not one of: " : " is not ", allowed));
  return value;
}

void Section::Mode(std::string_view key, uint32_t* out) {
  constexpr std::string_view kAllowed = "an octal file mode like \"0660\"";
  const std::string* text = FindScalar(key, kAllowed);
  if (text == nullptr) return;
  if (const auto value = ParseMode(*text)) {
    *out = *value;
  } else {
    Fail(key, Cat(Shown(*text), " is not ", kAllowed));
  }
}

bool Section::Text(std::string_view key, std::string* out) {
  const std::string* text = FindScalar(key, "a text");
  if (text == nullptr) return false;
  if (text->size() > kTextBytesMax) {
    Fail(key, Cat(text->size(), " bytes; at most ", kTextBytesMax, " are allowed"));
    return false;
  }
  *out = *text;
  return true;
}

int Section::ReadChoice(std::string_view key, std::span<const std::string_view> names) {
  const std::string allowed = Join(names);
  const std::string* text = FindScalar(key, allowed);
  if (text == nullptr) return -1;
  const auto found = std::find(names.begin(), names.end(), *text);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  Fail(key, Cat(Shown(*text), " is not one of: ", allowed));
  return -1;
}

bool Section::Each(std::string_view key, size_t items_max, absl::FunctionRef<void(const Node&, std::string)> fn) {
  const Node* list = Find(key);
  if (list == nullptr) return false;
  if (list->kind == Node::Kind::kNull) return true;
  if (list->kind != Node::Kind::kList) {
    Fail(key, Cat(KindName(list->kind), "; a list is allowed"));
    return false;
  }
  if (list->items.size() > items_max) {
    Fail(key, Cat(list->items.size(), " items; at most ", items_max, " are allowed"));
    return false;
  }
  const std::string path = PathOf(key);
  for (size_t i = 0; i < list->items.size(); ++i) fn(*list->items[i], Cat(path, "[", i, "]"));
  return true;
}

}  // namespace sluice::config

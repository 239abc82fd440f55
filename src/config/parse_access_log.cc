// The access log: its form, and which fields a line has.
#include <algorithm>
#include <iterator>

#include "config/parsers.h"
#include "config/suggest.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::AccessLogField;
using proxy::AccessLogOptions;

constexpr std::string_view kFieldIs = "the name of a field, {field: name}, {metadata: name} or {trailer: name}";
constexpr size_t kKeyBytesMax = 64;

bool TakeField(Reader& reader, const Node& node, const std::string& path, const std::string& name,
               AccessLogField* out) {
  const auto found = std::find(std::begin(proxy::kAccessFieldNames), std::end(proxy::kAccessFieldNames), name);
  if (found != std::end(proxy::kAccessFieldNames)) {
    out->field = static_cast<proxy::AccessField>(found - std::begin(proxy::kAccessFieldNames));
    return true;
  }
  const std::vector<std::string_view> known(std::begin(proxy::kAccessFieldNames), std::end(proxy::kAccessFieldNames));
  const std::string_view near = Suggest(name, known);
  reader.Fail(node, path,
              Cat(Shown(name), " is no field of the access log",
                  near.empty() ? Cat("; allowed: ", Join(known)) : Cat("; did you mean \"", near, "\"?")));
  return false;
}

// In a line of JSON.
std::string_view KeyOf(const AccessLogField& field) {
  if (!field.as.empty()) return field.as;
  if (field.source != AccessLogField::Source::kCall) return field.name;
  return proxy::kAccessFieldNames[static_cast<size_t>(field.field)];
}

// It stands before a value, and keeps fields apart where lines are text.
bool IsKey(std::string_view key) {
  return !key.empty() && key.size() <= kKeyBytesMax && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

bool ParseMap(Reader& reader, const Node& node, const std::string& path, AccessLogField* out) {
  Section section(reader, node, path);
  using Source = AccessLogField::Source;
  const Node* const field = section.Find("field");
  const bool metadata = section.Find("metadata") != nullptr, trailer = section.Find("trailer") != nullptr;
  bool good = false;
  if ((field != nullptr) + metadata + trailer != 1) {
    reader.Fail(node, path, "has not exactly one of field, metadata, trailer");
  } else if (field != nullptr) {
    std::string name;
    good = section.Text("field", &name) && TakeField(reader, *field, section.PathOf("field"), name, out);
  } else {
    out->source = metadata ? Source::kMetadata : Source::kTrailer;
    good = ParseMetadataName(section, metadata ? "metadata" : "trailer", &out->name);
  }
  if (section.Text("as", &out->as) && !IsKey(out->as)) {
    section.Fail("as", Cat(Shown(out->as), " is no key: 1 to ", kKeyBytesMax, " letters, digits, and any of _-."));
    good = false;
  }
  return good;
}

}  // namespace

void ParseAccessLog(Section& section, AccessLogOptions* out) {
  section.Choice("format", kAccessLogFormats, &out->format);
  section.WrittenFile("path", &out->path);
  section.Options(proxy::kAccessLogOptions, out);
  Reader& reader = section.reader();
  section.Each("fields", AccessLogOptions::kFieldsMax, [&](const Node& node, std::string path) {
    AccessLogField field;
    const bool map = node.kind == Node::Kind::kMap;
    const std::string* name = map ? nullptr : section.Scalar(node, path, kFieldIs);
    if (!map && name == nullptr) return;
    if (!(map ? ParseMap(reader, node, path, &field) : TakeField(reader, node, path, *name, &field))) return;
    const std::string_view key = KeyOf(field);
    if (std::any_of(out->fields.begin(), out->fields.end(), [&](const auto& other) { return KeyOf(other) == key; })) {
      return reader.Fail(node, path, Cat("the key ", Shown(key), " is there twice"));
    }
    out->fields.push_back(std::move(field));
  });
}

}  // namespace sluice::config

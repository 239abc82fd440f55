#include "proxy/identity/strict_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::proxy {
namespace {

using Json = nlohmann::json;

// Each function says whether to go on.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(JsonValue* root) : root_(root) {}

  bool null() override { return Put(JsonValue()) != nullptr; }
  bool boolean(bool value) override {
    JsonValue out;
    out.kind = JsonValue::Kind::kBool;
    out.truth = value;
    return Put(std::move(out)) != nullptr;
  }
  bool number_integer(number_integer_t value) override { return Integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return Integer(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    return Number(JsonValue::Kind::kDecimal, text, value);
  }
  bool string(string_t& value) override {
    JsonValue out;
    out.kind = JsonValue::Kind::kString;
    out.text = std::move(value);
    return Put(std::move(out)) != nullptr;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(JsonValue::Kind::kObject); }
  bool start_array(size_t) override { return Open(JsonValue::Kind::kArray); }
  bool key(string_t& name) override {
    open_.back()->names.push_back(std::move(name));
    return true;
  }
  // Looked for when all are there: to compare each with those before it would be quadratic.
  bool end_object() override {
    const std::vector<std::string>& names = open_.back()->names;
    std::vector<std::string_view> sorted(names.begin(), names.end());
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() && Close();
  }
  bool end_array() override { return Close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  // It was a bound that ended it.
  bool beyond() const { return beyond_; }

 private:
  bool Integer(auto value) {
    return Number(JsonValue::Kind::kInteger, std::to_string(value), static_cast<double>(value));
  }
  bool Number(JsonValue::Kind kind, const std::string& text, double value) {
    JsonValue out;
    out.kind = kind;
    out.text = text;
    out.number = value;
    return Put(std::move(out)) != nullptr;
  }
  bool Open(JsonValue::Kind kind) {
    if (open_.size() == kJsonDepthMax) return !(beyond_ = true);
    JsonValue out;
    out.kind = kind;
    // No pointer in open_ is to a value that moves: a container gets no other item while one of its items is open.
    JsonValue* const place = Put(std::move(out));
    if (place == nullptr) return false;
    open_.push_back(place);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  JsonValue* Put(JsonValue value) {
    if (++values_ > kJsonValuesMax) {
      beyond_ = true;
      return nullptr;
    }
    if (open_.empty()) {
      *root_ = std::move(value);
      return root_;
    }
    return &open_.back()->items.emplace_back(std::move(value));
  }

  JsonValue* const root_;
  std::vector<JsonValue*> open_;
  size_t values_ = 0;
  bool beyond_ = false;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const {
  if (kind != Kind::kObject) return nullptr;
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? nullptr : &items[static_cast<size_t>(it - names.begin())];
}

std::optional<JsonValue> ParseStrictJson(std::string_view text, bool* beyond) {
  // The library takes a byte order mark (RFC 8259 8.1 wants none), and a NUL for the end of the text.
  if (text.starts_with("\xef\xbb\xbf") || text.find('\0') != text.npos) return std::nullopt;
  JsonValue root;
  TreeBuilder builder(&root);
  if (!Json::sax_parse(text.begin(), text.end(), &builder, Json::input_format_t::json, /*strict=*/true)) {
    if (beyond != nullptr) *beyond = builder.beyond();
    return std::nullopt;
  }
  return root;
}

}  // namespace sluice::proxy

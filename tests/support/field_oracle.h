// FieldOracle: what ReadField should say of a message, by protobuf's own parser of fields it does not know.
#pragma once

#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

// "7", "'abc'", "absent" or "malformed".
class FieldOracle {
 public:
  static std::string Read(std::string_view message, const std::vector<uint32_t>& numbers) {
    FieldOracle oracle;
    if (!oracle.Visit(std::string(message), numbers, 0)) return "malformed";
    return oracle.found_.value_or("absent");
  }

 private:
  bool Visit(const std::string& message, const std::vector<uint32_t>& numbers, size_t depth) {
    google::protobuf::Empty empty;
    if (!empty.ParseFromString(message)) return false;
    const google::protobuf::UnknownFieldSet& fields = empty.GetReflection()->GetUnknownFields(empty);
    for (int i = 0; i < fields.field_count(); ++i) {
      const google::protobuf::UnknownField& field = fields.field(i);
      if (field.number() != static_cast<int>(numbers[depth]) ||
          field.type() == google::protobuf::UnknownField::TYPE_GROUP)
        continue;
      const bool delimited = field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED;
      if (depth + 1 < numbers.size()) {
        if (delimited && !Visit(field.length_delimited(), numbers, depth + 1)) return false;
      } else if (delimited) {
        found_ = "'" + field.length_delimited() + "'";
      } else {
        found_ = std::to_string(field.type() == google::protobuf::UnknownField::TYPE_VARINT    ? field.varint()
                                : field.type() == google::protobuf::UnknownField::TYPE_FIXED32 ? field.fixed32()
                                                                                               : field.fixed64());
      }
    }
    return true;
  }
  std::optional<std::string> found_;
};

}  // namespace sluice::test

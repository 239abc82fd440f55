// Validate: whether a decoded field section is a well-formed HTTP message part (RFC 9113 8.1.1, 8.2 and 8.3).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "http2/header.h"

namespace sluice::http2 {

// Remembers interned fields whose characters have been checked: a repeated header block is not scanned again.
// Field ids are never reused, so an entry cannot go stale. Direct-mapped.
class CheckedFields {
 public:
  bool Contains(const Field& field) const { return field.id != 0 && ids_[field.id % kSlots] == field.id; }
  void Add(const Field& field) {
    if (field.id != 0) ids_[field.id % kSlots] = field.id;
  }

 private:
  static constexpr size_t kSlots = 64;
  std::array<uint64_t, kSlots> ids_{};
};

// What the session needs to know of a message. `malformed` tells which rule was broken; null: none.
struct MessageHead {
  const char* malformed = nullptr;
  int64_t content_length = -1;  // -1: not given
  uint32_t status = 0;          // responses
  bool head = false;            // the method is HEAD
};

MessageHead ValidateRequest(const HeaderList& fields, CheckedFields& checked);
MessageHead ValidateResponse(const HeaderList& fields, CheckedFields& checked);
// Null, or the rule that was broken.
const char* ValidateTrailers(const HeaderList& fields, CheckedFields& checked);

// RFC 9113 8.2.1, for one field's name (a pseudo-header's colon included) and value.
bool ValidFieldName(std::string_view name);
bool ValidFieldValue(std::string_view value);

}  // namespace sluice::http2

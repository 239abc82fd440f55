// Validate: whether a decoded field section is a well-formed HTTP message part (RFC 9113 8.1.1, 8.2 and 8.3).
//
// What was found of an interned field, and of a FieldRun, is remembered there: a repeated header block is not scanned
// again.
#pragma once

#include <cstdint>
#include <string_view>

#include "http2/fields/header.h"

namespace sluice::http2 {

// For the rule that was broken, and no more than this: a field is to be spelled otherwise. Nothing behind it was looked
// at: validate what Respell() makes of the fields.
inline constexpr char kToRespell[] = "a field is to be spelled otherwise";

// The facts about a message that the session needs.
struct MessageHead {
  const char* malformed = nullptr;  // the rule that was broken, kToRespell among them; null: none
  int64_t content_length = -1;      // -1: not given
  uint32_t status = 0;              // responses
  bool head = false;                // the method is HEAD
  bool connect = false;             // the method is CONNECT
  bool authority_in_host = false;   // requests: no :authority, but a host field has one
};

MessageHead WalkRequest(const HeaderList& fields);
MessageHead WalkResponse(const HeaderList& fields);
const char* WalkTrailers(const HeaderList& fields);
// A regular field that is legal wherever it stands, and goes on as it is.
bool IsPlain(const Field& field);
// Looks only at the fields behind a run that has come before with its request line.
inline MessageHead ValidateRequest(const HeaderList& fields) {
  const FieldRun* run = fields.run();
  if (run == nullptr || !run->request_line) return WalkRequest(fields);
  for (size_t i = run->count; i < fields.size(); ++i) {
    if (!IsPlain(fields[i])) return WalkRequest(fields);
  }
  MessageHead head;
  head.content_length = run->content_length;
  return head;
}
inline bool IsWholeRun(const HeaderList& fields) {
  return fields.run() != nullptr && fields.run()->count == fields.size();
}
// The verdict on a run that is the whole of a block stands in the run, once that was walked over.
inline MessageHead ValidateResponse(const HeaderList& fields) {
  if (!IsWholeRun(fields) || fields.run()->status == 0) return WalkResponse(fields);
  MessageHead head;
  head.status = fields.run()->status;
  head.content_length = fields.run()->content_length;
  return head;
}
// As MessageHead::malformed.
inline const char* ValidateTrailers(const HeaderList& fields) {
  return IsWholeRun(fields) && fields.run()->trailers ? nullptr : WalkTrailers(fields);
}

// RFC 9113 8.2.1, for one field's name (a pseudo-header's colon included) and value.
bool ValidFieldName(std::string_view name);
bool ValidFieldValue(std::string_view value);
// Of a value, without the rule about blanks at its ends.
bool ValidCharacters(std::string_view value);

}  // namespace sluice::http2

// Respell: header fields in the one spelling that the proxy reads and passes on. Peers differ in what they take: some
// reset the stream at a blank behind a value, or end the connection at a value that they cannot decode, and with it the
// calls of others. So a field's odd spelling ends where it comes in.
//
//   blanks at either end   gone, as RFC 9110 5.5 has readers do; of grpc-message, whose text they are, percent-encoded
//   values of -bin fields  a field for each, in the spelling of bin_value.h
//
// The verdict on a field is found with its other checks (validate.h), once where it is interned; only lists with such a
// field come here. Not thread-safe: the list's worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "http2/fields/bin_value.h"
#include "http2/fields/header.h"

namespace sluice::http2 {

enum class Spelling : uint8_t {
  kPlain,  // goes on as it is
  kOther,  // goes on in another spelling
};
// The spelling of a field of bytes, by its name, without blanks at the ends of its value.
Spelling SpellingOfBin(const Field& field);
// The spelling of a regular field whose characters are legal.
inline Spelling SpellingOf(const Field& field) {
  const std::string_view value = field.value();
  if (!value.empty() && (base::IsBlank(value.front()) || base::IsBlank(value.back()))) return Spelling::kOther;
  const bool may_be_bin = field.token == Token::kOther || field.token == Token::kGrpcTraceBin;
  return may_be_bin && IsBinName(field.name()) ? SpellingOfBin(field) : Spelling::kPlain;
}

struct Respelled {
  HeaderList fields;
  uint32_t blanks = 0;            // fields that had some at their ends
  uint32_t bin = 0;               // fields of bytes that are spelled otherwise now
  uint32_t undecodable = 0;       // fields of bytes that are left out, because they do not decode
  std::string first_undecodable;  // its name; at most 64 bytes of it
  bool too_many =
      false;  // a list of values would have become more than `count_max` fields in all: the rest is left out
};
// `fields` without a pseudo-header that has blanks: validate.h refuses them.
Respelled Respell(InternTable& interns, const HeaderList& fields, size_t count_max);

}  // namespace sluice::http2

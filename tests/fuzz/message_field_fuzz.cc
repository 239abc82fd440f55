// The reader of one field of a request's first message, against protobuf's own parser, which knows no types here
// either: both find the same value or refuse the same bytes, wherever the pieces are cut, and no byte limit makes it
// read more.
//
// The input: how many field numbers (1 to 3) and which (1 to 8), where to cut, a limit of bytes, then the message.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "fuzz/support/program.h"
#include "proxy/message_field.h"
#include "support/field_oracle.h"

namespace sluice::proxy {
namespace {

using Kind = FieldValue::Kind;
using Pieces = std::vector<base::Slice>;

std::string Text(const FieldValue& value) {
  switch (value.kind) {
    case Kind::kFound:
      return value.delimited ? "'" + std::string(value.bytes()) + "'" : std::to_string(value.number);
    case Kind::kAbsent:
      return "absent";
    case Kind::kMalformed:
      return "malformed";
    case Kind::kCompressed:
      return "compressed";
    case Kind::kTruncated:
      return "truncated";
  }
  return "";
}

// Pieces of their own sizes, so that ASan sees a read beyond one. `memory` keeps them.
Pieces Cut(std::string_view bytes, base::Random random, std::vector<std::vector<char>>& memory) {
  Pieces out;
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(bytes.size(), random.Below(24));
    memory.emplace_back(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    out.push_back(base::Slice::Static({memory.back().data(), size}));
    bytes.remove_prefix(size);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Program program(data, size);
  std::vector<uint32_t> numbers(1 + program.Below(3));
  for (uint32_t& number : numbers) number = 1 + program.Below(8);
  const base::Random random(program.U8());
  const size_t limit = program.Size();
  const std::string message(program.Rest());

  std::string prefixed(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) prefixed += static_cast<char>(message.size() >> shift & 0xff);
  prefixed += message;
  std::vector<std::vector<char>> memory;
  const Pieces whole = Cut(prefixed, random, memory);
  const FieldValue value = ReadField(whole, numbers, SIZE_MAX >> 1);
  SLUICE_CHECK(value.complete);
  const std::string text = Text(value);
  SLUICE_CHECK(text == test::FieldOracle::Read(message, numbers));
  SLUICE_CHECK(FieldBytesWanted(whole, SIZE_MAX >> 1) == prefixed.size());

  // Looking at less finds the same, an earlier occurrence, or says that it has not seen all.
  const FieldValue part = ReadField(whole, numbers, limit);
  if (limit >= message.size()) SLUICE_CHECK(Text(part) == text);
  if (part.kind == Kind::kMalformed) SLUICE_CHECK(value.kind == Kind::kMalformed);
  if (value.HasKey() && part.HasKey()) (void)HashField(part, 1);

  // Each byte more, until it is complete: what is complete does not change any more.
  if (size <= 64) {
    for (size_t bytes = 0; bytes <= prefixed.size(); ++bytes) {
      const Pieces some = Cut(std::string_view(prefixed).substr(0, bytes), random, memory);
      const FieldValue early = ReadField(some, numbers, SIZE_MAX >> 1);
      if (early.complete) SLUICE_CHECK(Text(early) == text);
      if (early.complete) break;
    }
  }
  return 0;
}

}  // namespace sluice::proxy

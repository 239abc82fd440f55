// HPACK decoding (RFC 7541) of any bytes, against libnghttp2: both refuse the same blocks and read the same fields. A
// second decoder of ours with small limits must stay in step: it drops fields and keeps the table.
//
// The input: blocks one after the other. Each begins with its length; lengths from 250 on change the table's size
// instead.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "fuzz/support/nghttp2_hpack.h"
#include "fuzz/support/program.h"
#include "http2/hpack/decoder.h"

namespace sluice::http2 {
namespace {

constexpr DecodeLimits kNoLimits = {SIZE_MAX, SIZE_MAX};
constexpr DecodeLimits kSmall = {300, 4};

class Target {
 public:
  // False: the block was refused, as it should, and the connection is over.
  bool Block(std::string_view block) {
    std::vector<bool> never;
    const std::optional<fuzz::Pairs> theirs = inflater_.Decode(block, &never);
    // Of its own size, so that ASan sees a read behind the end.
    const std::vector<char> bytes(block.begin(), block.end());
    HeaderList ours(&interns_), few(&interns_);
    const DecodeResult result = decoder_.Decode({bytes.data(), bytes.size()}, kNoLimits, ours);
    const DecodeResult limited = small_.Decode({bytes.data(), bytes.size()}, kSmall, few);
    SLUICE_CHECK((result == DecodeResult::kError) == !theirs.has_value());
    SLUICE_CHECK((limited == DecodeResult::kError) == !theirs.has_value());
    if (!theirs) return false;
    SLUICE_CHECK(result == DecodeResult::kOk);
    const fuzz::Pairs pairs = fuzz::PairsOf(ours);
    SLUICE_CHECK(pairs == *theirs);
    for (size_t i = 0; i < pairs.size(); ++i) SLUICE_CHECK((ours[i].indexing == Indexing::kNever) == never[i]);
    SLUICE_CHECK(decoder_.table_bytes() == inflater_.table_bytes());
    SLUICE_CHECK(small_.table_bytes() == inflater_.table_bytes());

    const bool fits = ours.hpack_size() <= kSmall.header_list_bytes_max && ours.size() <= kSmall.header_count_max;
    SLUICE_CHECK((limited == DecodeResult::kOk) == fits);
    SLUICE_CHECK(few.hpack_size() <= kSmall.header_list_bytes_max && few.size() <= kSmall.header_count_max);
    const fuzz::Pairs some = fuzz::PairsOf(few);
    SLUICE_CHECK(some.size() <= pairs.size() && std::equal(some.begin(), some.end(), pairs.begin()));
    return true;
  }

  void SetTableBytesMax(size_t bytes) {
    inflater_.SetTableBytesMax(bytes);
    decoder_.SetTableBytesMax(bytes);
    small_.SetTableBytesMax(bytes);
  }

 private:
  InternTable interns_;
  HpackDecoder decoder_{interns_}, small_{interns_};
  fuzz::Inflater inflater_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 1 << 15) return 0;  // libnghttp2 refuses strings above 64 KiB, which we do not
  fuzz::Program program(data, size);
  Target target;
  while (!program.done()) {
    const uint8_t length = program.U8();
    if (length >= 250) {
      static constexpr size_t kSizes[] = {0, 33, 64, 256, 4096, 8192};
      target.SetTableBytesMax(kSizes[length - 250]);
    } else if (!target.Block(program.Bytes(length))) {
      break;
    }
  }
  return 0;
}

}  // namespace sluice::http2

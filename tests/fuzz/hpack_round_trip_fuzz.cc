// HPACK encoding: any list of fields, however its fields are held, is read back equal by our decoder and by libnghttp2,
// over changes of the table's size; what was decoded is encoded again to the next hop, runs and all, and read back
// equal once more.
//
// The input: blocks of fields, each a count and then the choices of Field(); a count from 16 on changes the table's
// size.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "fuzz/support/nghttp2_hpack.h"
#include "fuzz/support/program.h"
#include "http2/hpack/decoder.h"
#include "http2/hpack/encoder.h"

namespace sluice::http2 {
namespace {

constexpr DecodeLimits kNoLimits = {SIZE_MAX, SIZE_MAX};

std::string Encode(HpackEncoder& encoder, const HeaderList& list) {
  // Of the size that was promised to be enough: ASan sees a byte more.
  std::vector<uint8_t> block(encoder.BytesMax(list));
  const size_t bytes = encoder.Encode(list, block.data());
  SLUICE_CHECK(bytes <= block.size());
  return {reinterpret_cast<char*>(block.data()), bytes};
}

// One hop: what is said is what is heard.
class Hop {
 public:
  // `said`: the fields of what is to be said.
  explicit Hop(InternTable& said) : encoder_(said) {}
  void SetTableBytesMax(size_t bytes) {
    encoder_.SetPeerTableBytesMax(bytes);
    decoder_.SetTableBytesMax(bytes);
    inflater_.SetTableBytesMax(bytes);
  }
  void Pass(const HeaderList& said, HeaderList& heard) {
    const std::string block = Encode(encoder_, said);
    const fuzz::Pairs pairs = fuzz::PairsOf(said);
    std::vector<bool> never;
    const std::optional<fuzz::Pairs> theirs = inflater_.Decode(block, &never);
    SLUICE_CHECK(theirs.has_value() && *theirs == pairs);
    SLUICE_CHECK(decoder_.Decode(block, kNoLimits, heard) == DecodeResult::kOk);
    SLUICE_CHECK(fuzz::PairsOf(heard) == pairs);
    SLUICE_CHECK(heard.hpack_size() == said.hpack_size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      const bool must_not = said[i].indexing == Indexing::kNever;  // RFC 7541 7.1.3
      SLUICE_CHECK(never[i] == must_not && (heard[i].indexing == Indexing::kNever) == must_not);
    }
    SLUICE_CHECK(encoder_.table_bytes() == inflater_.table_bytes() && encoder_.table_bytes() == decoder_.table_bytes());
    SLUICE_CHECK(encoder_.table_bytes() <= HpackEncoder::kTableBytesCap);
  }
  InternTable& interns() { return interns_; }

 private:
  InternTable interns_;  // of the receiver
  HpackEncoder encoder_;
  HpackDecoder decoder_{interns_};
  fuzz::Inflater inflater_;
};

void AddField(fuzz::Program& program, InternTable& interns, HeaderList& list) {
  static constexpr const char* kNames[] = {":method",    ":path", ":status",      "content-type", "grpc-timeout", "x-a",
                                           "user-agent", "te",    "grpc-message", "cookie",       "authorization"};
  static constexpr const char* kValues[] = {
      "GET", "POST", "200", "", "/pkg.Svc/Get", "gzip, deflate", "application/grpc", "trailers"};
  const uint8_t how = program.U8();
  const std::string name(how & 0x80 ? program.ShortBytes() : kNames[program.U8() % std::size(kNames)]);
  std::string value(how & 0x40 ? program.ShortBytes() : kValues[program.U8() % std::size(kValues)]);
  if ((how & 0x30) == 0x30) value.append(program.Size() / 4, static_cast<char>('a' + (how & 3)));
  switch (how & 3) {
    case 0:
      return (void)list.Add(name, value, Indexing::kLiteral);
    case 1:
      return (void)list.Add(name, value, Indexing::kIndexed);
    case 2:
      return (void)list.Add(name, value, Indexing::kNever);
    default:
      return list.AddInterned(interns.Intern(name, value));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Program program(data, size);
  InternTable interns;
  // The encoder of the second hop is in the table of the first hop's receiver, as in a proxy's worker.
  InternTable end_interns;
  Hop first(interns);
  HpackEncoder second_encoder(first.interns());
  HpackDecoder second_decoder(end_interns);
  for (int blocks = 0; blocks < 64 && !program.done(); ++blocks) {
    const uint8_t count = program.U8();
    if (count >= 16) {
      static constexpr size_t kSizes[] = {0, 33, 64, 100, 256, 1000, 4096, 8192};
      const size_t bytes = kSizes[count % std::size(kSizes)];
      if (count & 0x80) {
        second_encoder.SetPeerTableBytesMax(bytes);
        second_decoder.SetTableBytesMax(bytes);
      } else {
        first.SetTableBytesMax(bytes);
      }
      continue;
    }
    HeaderList said(&interns);
    for (uint8_t i = 0; i < count; ++i) AddField(program, interns, said);
    // Said again, as a gRPC client does: the second time it may come as a run.
    for (int times = 0; times < 2; ++times) {
      HeaderList heard(&first.interns());
      first.Pass(said, heard);
      HeaderList at_the_end(&end_interns);
      SLUICE_CHECK(second_decoder.Decode(Encode(second_encoder, heard), kNoLimits, at_the_end) == DecodeResult::kOk);
      SLUICE_CHECK(fuzz::PairsOf(at_the_end) == fuzz::PairsOf(said));
    }
  }
  return 0;
}

}  // namespace sluice::http2

// Random blocks: our encoder and decoder against libnghttp2's, and against each other.
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <optional>
#include <random>

#include "base/random.h"
#include "unit/http2/hpack/support.h"

namespace sluice::http2 {
namespace {

uint64_t NewSeed() {
  const uint64_t seed = std::random_device{}();
  std::printf("[   seed   ] %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// libnghttp2's inflater: the fields of a block, or nothing if it refuses it.
class Inflater {
 public:
  Inflater() { nghttp2_hd_inflate_new(&inflater_); }
  ~Inflater() { nghttp2_hd_inflate_del(inflater_); }
  void SetTableBytesMax(size_t bytes) { nghttp2_hd_inflate_change_table_size(inflater_, bytes); }

  std::optional<Pairs> Decode(std::string_view block, std::vector<bool>* never = nullptr) {
    Pairs pairs;
    const uint8_t* p = reinterpret_cast<const uint8_t*>(block.data());
    size_t left = block.size();
    for (;;) {
      nghttp2_nv nv;
      int flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &nv, &flags, p, left, 1);
      if (used < 0) return std::nullopt;
      p += used;
      left -= static_cast<size_t>(used);
      if (flags & NGHTTP2_HD_INFLATE_EMIT) {
        pairs.emplace_back(std::string(reinterpret_cast<char*>(nv.name), nv.namelen),
                           std::string(reinterpret_cast<char*>(nv.value), nv.valuelen));
        if (never != nullptr) never->push_back((nv.flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
      }
      if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return pairs;
  }

 private:
  nghttp2_hd_inflater* inflater_;
};

class Deflater {
 public:
  Deflater() { nghttp2_hd_deflate_new(&deflater_, 4096); }
  ~Deflater() { nghttp2_hd_deflate_del(deflater_); }
  void SetTableBytesMax(size_t bytes) { nghttp2_hd_deflate_change_table_size(deflater_, bytes); }

  std::string Encode(const Pairs& pairs, const std::vector<bool>& never) {
    std::vector<nghttp2_nv> nvs;
    for (size_t i = 0; i < pairs.size(); ++i) {
      nvs.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(pairs[i].first.data())),
                     reinterpret_cast<uint8_t*>(const_cast<char*>(pairs[i].second.data())), pairs[i].first.size(),
                     pairs[i].second.size(),
                     static_cast<uint8_t>(never[i] ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE)});
    }
    std::string block(nghttp2_hd_deflate_bound(deflater_, nvs.data(), nvs.size()), '\0');
    const ssize_t size = nghttp2_hd_deflate_hd(deflater_, reinterpret_cast<uint8_t*>(block.data()), block.size(),
                                               nvs.data(), nvs.size());
    EXPECT_GE(size, 0);
    block.resize(static_cast<size_t>(size));
    return block;
  }

 private:
  nghttp2_hd_deflater* deflater_;
};

// Fields as they come: some names and values again and again, some new, some long, any bytes.
class FieldSource {
 public:
  explicit FieldSource(uint64_t seed) : random_(seed) {}
  base::Random& random() { return random_; }

  Pairs Block() {
    Pairs pairs(random_.Below(14));
    for (auto& pair : pairs) pair = One();
    return pairs;
  }

 private:
  std::pair<std::string, std::string> One() {
    static constexpr const char* kNames[] = {
        ":method", ":path",      ":status",      "content-type", "grpc-timeout",
        "x-a",     "user-agent", "grpc-message", "traceparent",  "accept-encoding"};
    static constexpr const char* kValues[] = {
        "GET", "POST", "200", "", "/pkg.Svc/Get", "gzip, deflate", "application/grpc"};
    std::string name = random_.Below(8) == 0 ? Bytes(1 + random_.Below(20)) : kNames[random_.Below(std::size(kNames))];
    std::string value;
    switch (random_.Below(10)) {
      case 0:
        value = Bytes(random_.Below(random_.Below(20) == 0 ? 5000 : 60));
        break;
      case 1:
      case 2:
        value = std::to_string(random_.Below(300));
        break;
      default:
        value = kValues[random_.Below(std::size(kValues))];
    }
    return {std::move(name), std::move(value)};
  }

  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    const bool any = random_.Below(3) == 0;
    for (char& c : bytes) c = static_cast<char>(any ? random_.Below(256) : 'a' + random_.Below(26));
    return bytes;
  }

  base::Random random_;
};

size_t RandomTableBytes(base::Random& random) {
  static constexpr size_t kSizes[] = {0, 33, 64, 100, 256, 1000, 4096, 4096, 8192};
  return kSizes[random.Below(std::size(kSizes))];
}

// Fills a list with the pairs, each interned or transient at random.
void Fill(HeaderList& list, InternTable& interns, const Pairs& pairs, base::Random& random) {
  for (const auto& [name, value] : pairs) {
    switch (random.Below(6)) {
      case 0:
        list.Add(name, value, Indexing::kNever);
        break;
      case 1:
        list.Add(name, value, Indexing::kLiteral);
        break;
      case 2:
        list.Add(name, value, Indexing::kIndexed);
        break;
      default:
        list.AddInterned(interns.Intern(name, value));
    }
  }
}

constexpr DecodeLimits kNoLimits = {SIZE_MAX, SIZE_MAX};

TEST(HpackDifferential, OurBlocksAreReadByNghttp2AndByUs) {
  FieldSource source(NewSeed());
  base::Random& random = source.random();
  InternTable interns;
  for (int connection = 0; connection < 100; ++connection) {
    HpackEncoder encoder(interns);
    InternTable peer_interns;
    HpackDecoder decoder(peer_interns);
    Inflater inflater;
    for (int block = 0; block < 1000; ++block) {
      while (random.Below(50) == 0) {
        const size_t bytes = RandomTableBytes(random);
        encoder.SetPeerTableBytesMax(bytes);
        decoder.SetTableBytesMax(bytes);
        inflater.SetTableBytesMax(bytes);
      }
      const Pairs pairs = source.Block();
      HeaderList list(&interns);
      Fill(list, interns, pairs, random);
      const std::string bytes = EncodeToString(encoder, list);
      std::vector<bool> never;
      const std::optional<Pairs> theirs = inflater.Decode(bytes, &never);
      ASSERT_TRUE(theirs.has_value());
      ASSERT_EQ(*theirs, pairs);
      for (size_t i = 0; i < never.size(); ++i) ASSERT_EQ(never[i], list[i].indexing == Indexing::kNever);
      HeaderList ours(&peer_interns);
      ASSERT_EQ(decoder.Decode(bytes, kNoLimits, ours), DecodeResult::kOk);
      ASSERT_EQ(PairsOf(ours), pairs);
      ASSERT_EQ(decoder.table_bytes(), encoder.table_bytes());
    }
  }
  EXPECT_EQ(interns.size(), 0u);
}

TEST(HpackDifferential, Nghttp2BlocksAreReadByUs) {
  FieldSource source(NewSeed());
  base::Random& random = source.random();
  InternTable interns;
  for (int connection = 0; connection < 100; ++connection) {
    HpackDecoder decoder(interns);
    Deflater deflater;
    for (int block = 0; block < 1000; ++block) {
      while (random.Below(50) == 0) {
        const size_t bytes = RandomTableBytes(random);
        decoder.SetTableBytesMax(bytes);
        deflater.SetTableBytesMax(bytes);
      }
      const Pairs pairs = source.Block();
      std::vector<bool> never;
      for (size_t i = 0; i < pairs.size(); ++i) never.push_back(random.Below(6) == 0);
      HeaderList list(&interns);
      ASSERT_EQ(decoder.Decode(deflater.Encode(pairs, never), kNoLimits, list), DecodeResult::kOk);
      ASSERT_EQ(PairsOf(list), pairs);
      for (size_t i = 0; i < never.size(); ++i) {
        if (never[i]) {
          ASSERT_EQ(list[i].indexing, Indexing::kNever);
        }
      }
    }
  }
  EXPECT_EQ(interns.size(), 0u);
}

// Damaged blocks and noise: both accept the same, and read the same. Blocks are short, so that libnghttp2's
// limit of 64 KiB a string, which we do not have, is not met.
TEST(HpackDifferential, GarbageMeetsTheSameVerdict) {
  FieldSource source(NewSeed());
  base::Random& random = source.random();
  InternTable interns;
  int accepted = 0, refused = 0;
  for (int connection = 0; connection < 60'000; ++connection) {
    HpackDecoder decoder(interns);
    HpackEncoder encoder(interns);
    Inflater inflater;
    for (int block = 0; block < 4; ++block) {
      std::string bytes;
      if (random.Below(3) == 0) {
        bytes.resize(random.Below(40));
        for (char& c : bytes) c = static_cast<char>(random.Below(256));
      } else {
        HeaderList list(&interns);
        Fill(list, interns, source.Block(), random);
        bytes = EncodeToString(encoder, list);
        for (uint64_t flips = random.Below(3); flips > 0 && !bytes.empty(); --flips) {
          bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
        }
      }
      const std::optional<Pairs> theirs = inflater.Decode(bytes);
      HeaderList ours(&interns);
      const DecodeResult result = decoder.Decode(bytes, kNoLimits, ours);
      ASSERT_EQ(result == DecodeResult::kOk, theirs.has_value()) << ToHex(bytes);
      ++(theirs.has_value() ? accepted : refused);
      if (!theirs.has_value()) break;
      ASSERT_EQ(PairsOf(ours), *theirs) << ToHex(bytes);
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
  EXPECT_EQ(interns.size(), 0u);
}

}  // namespace
}  // namespace sluice::http2

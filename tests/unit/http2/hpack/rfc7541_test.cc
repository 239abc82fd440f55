// The examples of RFC 7541 Appendix C, byte by byte.
#include <gtest/gtest.h>

#include "http2/hpack/huffman.h"
#include "http2/hpack/integer.h"
#include "unit/http2/hpack/support.h"

namespace sluice::http2 {
namespace {

struct Example {
  const char* hex;
  Pairs fields;
  size_t table_bytes;
};

void ExpectDecodes(size_t table_bytes_max, const std::vector<Example>& examples) {
  InternTable interns;
  {
    HpackDecoder decoder(interns, table_bytes_max);
    for (const Example& example : examples) {
      HeaderList list(&interns);
      ASSERT_EQ(decoder.Decode(FromHex(example.hex), {}, list), DecodeResult::kOk) << example.hex;
      EXPECT_EQ(PairsOf(list), example.fields);
      EXPECT_EQ(decoder.table_bytes(), example.table_bytes);
    }
  }
  EXPECT_EQ(interns.size(), 0u);
}

const Pairs kRequest1 = {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "www.example.com"}};
const Pairs kRequest2 = {{":method", "GET"},
                         {":scheme", "http"},
                         {":path", "/"},
                         {":authority", "www.example.com"},
                         {"cache-control", "no-cache"}};
const Pairs kRequest3 = {{":method", "GET"},
                         {":scheme", "https"},
                         {":path", "/index.html"},
                         {":authority", "www.example.com"},
                         {"custom-key", "custom-value"}};
const Pairs kResponse1 = {{":status", "302"},
                          {"cache-control", "private"},
                          {"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
                          {"location", "https://www.example.com"}};
const Pairs kResponse2 = {{":status", "307"},
                          {"cache-control", "private"},
                          {"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
                          {"location", "https://www.example.com"}};
const Pairs kResponse3 = {{":status", "200"},
                          {"cache-control", "private"},
                          {"date", "Mon, 21 Oct 2013 20:13:22 GMT"},
                          {"location", "https://www.example.com"},
                          {"content-encoding", "gzip"},
                          {"set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"}};

const std::vector<Example> kHuffmanRequests = {
    {"8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", kRequest1, 57},
    {"8286 84be 5886 a8eb 1064 9cbf", kRequest2, 110},
    {"8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", kRequest3, 164}};
const std::vector<Example> kHuffmanResponses = {
    {"4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad "
     "1718"
     "63c7 8f0b 97c8 e9ae 82ae 43d3",
     kResponse1, 222},
    {"4883 640e ffc1 c0bf", kResponse2, 222},
    {"88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 "
     "e6c7"
     "b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
     kResponse3, 215}};

TEST(Rfc7541, C1Integers) {
  const auto read = [](std::string bytes, int prefix) {
    const uint8_t* p = reinterpret_cast<const uint8_t*>(bytes.data());
    const uint8_t* const end = p + bytes.size();
    uint32_t value = 0;
    EXPECT_TRUE(ReadInteger(p, end, prefix, value));
    EXPECT_EQ(p, end);
    return value;
  };
  EXPECT_EQ(read("\x0a", 5), 10u);
  EXPECT_EQ(read(FromHex("1f9a0a"), 5), 1337u);
  EXPECT_EQ(read("\x2a", 8), 42u);
  uint8_t bytes[kIntegerBytesMax];
  EXPECT_EQ(ToHex({reinterpret_cast<char*>(bytes), static_cast<size_t>(WriteInteger(bytes, 0, 5, 1337) - bytes)}),
            "1f9a0a");
  for (uint64_t value : {0ull, 30ull, 31ull, 32ull, 158ull, 159ull, 65535ull, 0xffffffffull}) {
    const uint8_t* end = WriteInteger(bytes, 0, 5, value);
    EXPECT_EQ(read({reinterpret_cast<char*>(bytes), static_cast<size_t>(end - bytes)}, 5), value);
  }
}

TEST(Rfc7541, C2SingleRepresentations) {
  ExpectDecodes(
      4096,
      {{"400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", {{"custom-key", "custom-header"}}, 55}});
  ExpectDecodes(4096, {{"040c 2f73 616d 706c 652f 7061 7468", {{":path", "/sample/path"}}, 0}});
  ExpectDecodes(4096, {{"1008 7061 7373 776f 7264 0673 6563 7265 74", {{"password", "secret"}}, 0}});
  ExpectDecodes(4096, {{"82", {{":method", "GET"}}, 0}});
}

TEST(Rfc7541, C3RequestsWithoutHuffman) {
  ExpectDecodes(4096, {{"8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", kRequest1, 57},
                       {"8286 84be 5808 6e6f 2d63 6163 6865", kRequest2, 110},
                       {"8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", kRequest3, 164}});
}

TEST(Rfc7541, C4RequestsWithHuffman) { ExpectDecodes(4096, kHuffmanRequests); }

TEST(Rfc7541, C5ResponsesWithoutHuffman) {
  ExpectDecodes(256,
                {{"4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32"
                  "3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                  kResponse1, 222},
                 {"4803 3330 37c1 c0bf", kResponse2, 222},
                 {"88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970"
                  "7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61"
                  "6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
                  kResponse3, 215}});
}

TEST(Rfc7541, C6ResponsesWithHuffman) { ExpectDecodes(256, kHuffmanResponses); }

void ExpectEncodes(HpackEncoder& encoder, InternTable& interns, const std::vector<Example>& examples) {
  for (const Example& example : examples) {
    HeaderList list(&interns);
    for (const auto& [name, value] : example.fields) list.AddInterned(interns.Intern(name, value));
    EXPECT_EQ(ToHex(EncodeToString(encoder, list)), ToHex(FromHex(example.hex)));
    EXPECT_EQ(encoder.table_bytes(), example.table_bytes);
  }
}

TEST(Rfc7541, OurEncoderWritesC4AndC6) {
  InternTable interns;
  {
    HpackEncoder encoder(interns);
    ExpectEncodes(encoder, interns, kHuffmanRequests);
  }
  {
    HpackEncoder encoder(interns);
    encoder.SetPeerTableBytesMax(256);
    HeaderList none;
    EXPECT_EQ(ToHex(EncodeToString(encoder, none)), "3fe101");
    ExpectEncodes(encoder, interns, kHuffmanResponses);
  }
  EXPECT_EQ(interns.size(), 0u);
}

// The same with fields of the proxy itself: transient, to be indexed.
TEST(Rfc7541, OurEncoderWritesC4FromTransientFields) {
  InternTable interns;
  HpackEncoder encoder(interns);
  for (const Example& example : kHuffmanRequests) {
    HeaderList list;
    for (const auto& [name, value] : example.fields) list.Add(name, value, Indexing::kIndexed);
    EXPECT_EQ(ToHex(EncodeToString(encoder, list)), ToHex(FromHex(example.hex)));
  }
}

std::string Decoded(std::string_view code, bool& ok) {
  std::string out(HuffmanDecodedMax(code.size()) + 1, '\0');
  char* end = HuffmanDecode(reinterpret_cast<const uint8_t*>(code.data()), code.size(), out.data());
  ok = end != nullptr;
  if (ok) out.resize(static_cast<size_t>(end - out.data()));
  return out;
}

TEST(Huffman, EveryByteComesBackAtEveryBitOffset) {
  for (int c = 0; c < 256; ++c) {
    for (int before = 0; before < 9; ++before) {
      const std::string text =
          std::string(static_cast<size_t>(before), 'a') + std::string(20, static_cast<char>(c)) + "b";
      std::string code(HuffmanSize(text), '\0');
      uint8_t* start = reinterpret_cast<uint8_t*>(code.data());
      ASSERT_EQ(HuffmanEncode(text, start), start + code.size());
      bool ok;
      EXPECT_EQ(Decoded(code, ok), text) << c;
      EXPECT_TRUE(ok);
    }
  }
}

TEST(Huffman, RefusesEosAndBadPadding) {
  const auto accepts = [](const char* hex) {
    bool ok;
    Decoded(FromHex(hex), ok);
    return ok;
  };
  EXPECT_TRUE(accepts(""));
  EXPECT_TRUE(accepts("1f"));           // 'a' and three ones
  EXPECT_FALSE(accepts("1e"));          // padding that is not all ones
  EXPECT_FALSE(accepts("18"));          // padding of zeros
  EXPECT_FALSE(accepts("1fff"));        // 11 bits of ones
  EXPECT_FALSE(accepts("ff"));          // 8 bits of ones
  EXPECT_FALSE(accepts("ffffffff"));    // EOS and two ones
  EXPECT_FALSE(accepts("1fffffffff"));  // 'a', EOS
  EXPECT_FALSE(accepts("1fffffffff1f"));
  EXPECT_TRUE(accepts("fe3f"));  // '!' and six ones
  EXPECT_FALSE(accepts("fe3e"));
  EXPECT_TRUE(accepts("f9"));  // '*' has 8 bits: no padding at all
}

}  // namespace
}  // namespace sluice::http2

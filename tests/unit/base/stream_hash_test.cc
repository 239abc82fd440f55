// The hash of a stream is that of its bytes, however they are cut.
#include "base/stream_hash.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hash.h"

namespace sluice::base {
namespace {

TEST(StreamHash, IsTheSameHoweverTheBytesAreCut) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 7);
  const uint64_t whole = XxHash64(bytes);
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{31}, size_t{32}, size_t{33}, size_t{500}, size_t{1000}}) {
    StreamHash hash;
    for (size_t at = 0; at < bytes.size(); at += piece) hash.Add(std::string_view(bytes).substr(at, piece));
    hash.Add("");
    EXPECT_EQ(hash.Value(), whole) << piece;
    EXPECT_EQ(hash.Value(), whole) << "asking changes nothing";
  }
}

TEST(StreamHash, OtherBytesAndACopyThatGoesOnAreOthers) {
  StreamHash a, b;
  a.Add("ab");
  b.Add("ba");
  EXPECT_NE(a.Value(), b.Value());
  StreamHash copy = a;
  copy.Add("c");
  EXPECT_NE(copy.Value(), a.Value());
  EXPECT_EQ(copy.Value(), XxHash64("abc"));
  EXPECT_EQ(StreamHash().Value(), XxHash64(""));
}

}  // namespace
}  // namespace sluice::base

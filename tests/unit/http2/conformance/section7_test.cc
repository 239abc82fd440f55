// RFC 9113 7: error codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/conformance/script.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::SessionHarness;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Codes that are not defined trigger nothing of their own.
TEST(Section7, UnknownCodesAreLikeAnyOther) {
  for (uint32_t code : {14u, 99u, 0x80000007u, 0xffffffffu}) {
    for (Role role : {Role::kServer, Role::kClient}) {
      SessionHarness peer(role);
      peer.Handshake();
      for (uint32_t id : {1, 3}) role == Role::kServer ? peer.Request(id) : peer.Open();
      peer.Frames();
      EXPECT_TRUE(peer.Feed(h2::RstStream(1, code)));
      EXPECT_TRUE(peer.Heard(1).reset);
      EXPECT_THAT(peer.log.back(), HasSubstr(" peer"));  // not refused, nor any other cause
      EXPECT_TRUE(peer.Feed(h2::Goaway(0x7fffffff, code)));
      EXPECT_FALSE(peer.Heard(3).reset);
      EXPECT_THAT(peer.Said(), IsEmpty());
    }
  }
}

}  // namespace
}  // namespace sluice::http2

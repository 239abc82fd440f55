// Handshakes whose private key is slow: OpenSSL works on a helper thread, and the worker goes on.
#include <gtest/gtest.h>

#include <future>

#include "runtime/internal/blocking_pool.h"
#include "support/tls_pair.h"

namespace sluice::net {
namespace {

using test::MakeCert;

constexpr unsigned kSlowBits = 2304;  // made more quickly than 3072

class TlsSlowKeyTest : public test::TlsPair {
 public:
  TlsSlowKeyTest() { own = MakeCert({.common_name = "s", .names = "DNS:a.example.com", .rsa_bits = kSlowBits}, &ca); }

  // Until what the only helper has been given so far is done, and the worker has heard of it.
  void Help() {
    std::promise<void> reached;
    ASSERT_TRUE(time.runtime.Block(
        time.worker, [&] { reached.set_value(); }, [] {}));
    reached.get_future().wait();
    time.Run();
  }
  // Each hop is a flight, or a part of one.
  void HelpUntilBothEnd(int hops) {
    while (hops-- > 0 && !(Ended(at_client) && Ended(at_server))) Help();
  }
  static bool Ended(const TlsOutcome& outcome) {
    return outcome.stream != nullptr || outcome.failure != TlsFailure::kNone;
  }

  // The helper hangs from here on until `end`.
  struct Hang {
    explicit Hang(TlsSlowKeyTest& test) {
      EXPECT_TRUE(test.time.runtime.Block(
          test.time.worker,
          [this, f = end.get_future().share()] {
            begun.set_value();
            f.wait();
          },
          [] {}));
      begun.get_future().wait();
    }
    std::promise<void> begun, end;
  };
};

TEST_F(TlsSlowKeyTest, TheHandshakeIsMadeByTheHelper) {
  Connect();
  EXPECT_FALSE(Ended(at_server));
  HelpUntilBothEnd(8);
  ExpectConnected();
  EXPECT_EQ(Write(*at_client.stream, "to the server"), 13u);
  time.Run();
  EXPECT_EQ(Read(*at_server.stream), "to the server");
  EXPECT_EQ(Write(*at_server.stream, "to the client"), 13u);
  time.Run();
  EXPECT_EQ(Read(*at_client.stream), "to the client");
}

TEST_F(TlsSlowKeyTest, InSmallPiecesToo) {
  call_bytes_max = 31;
  Connect();
  HelpUntilBothEnd(1000);
  ExpectConnected();
}

TEST_F(TlsSlowKeyTest, AClientsKeyToo) {
  Trust();
  client_has_certificate = true;
  client = MakeCert({.common_name = "c", .names = "URI:spiffe://d/c", .rsa_bits = kSlowBits}, &ca);
  Connect();
  HelpUntilBothEnd(20);
  ExpectConnected();
  EXPECT_TRUE(at_server.stream->peer().has_certificate);
}

TEST_F(TlsSlowKeyTest, TheReasonOfAFailureComesWithIt) {
  auto other = MakeCert({.common_name = "other", .authority = true});
  trusted_by_client = &other;
  Connect();
  HelpUntilBothEnd(20);
  EXPECT_EQ(at_client.failure, TlsFailure::kCertificate);
  EXPECT_EQ(at_server.failure, TlsFailure::kAlert);
  EXPECT_NE(at_server.detail.find("unknown ca"), std::string::npos) << at_server.detail;
}

TEST_F(TlsSlowKeyTest, AClientThatGoesIsNoticed) {
  Hang hang(*this);
  Connect();
  one.reset();
  hang.end.set_value();
  HelpUntilBothEnd(4);
  EXPECT_EQ(at_server.failure, TlsFailure::kClosed);
}

TEST_F(TlsSlowKeyTest, TheDeadlineHoldsWhileTheHelperIsBusy) {
  Hang hang(*this);
  Connect();
  time.clock.Advance(std::chrono::seconds(5));
  time.Run();
  EXPECT_EQ(at_server.failure, TlsFailure::kTimeout);
  hang.end.set_value();
  Help();  // its step is made and comes to nothing
  EXPECT_EQ(at_server.stream, nullptr);
}

TEST_F(TlsSlowKeyTest, ItMayBeCancelledMeanwhile) {
  Hang hang(*this);
  Connect();
  two.reset();
  hang.end.set_value();
  Help();
  EXPECT_FALSE(Ended(at_server));
  EXPECT_EQ(at_client.failure, TlsFailure::kClosed);
}

TEST_F(TlsSlowKeyTest, WhereTheHelpersHaveNoRoomTheWorkerDoesIt) {
  Hang hang(*this);
  while (time.runtime.Block(
      time.worker, [] {}, [] {})) {
  }
  Connect();
  ExpectConnected();
  hang.end.set_value();
}

}  // namespace
}  // namespace sluice::net

// The channel against a DNS server on loopback: its sockets, timers, and ends.
#include "net/dns/dns_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/dns_server.h"
#include "support/socket_worker.h"

namespace sluice::net {
namespace {

using std::chrono::milliseconds;
using test::DnsServer;
using Kind = DnsReply::Kind;

class DnsChannelTest : public ::testing::Test {
 protected:
  ~DnsChannelTest() override { time.runtime.Shutdown(); }
  // The timeout is long but where it is to be met: a busy machine is no silent server.
  void Open(std::vector<std::string> servers, milliseconds timeout = milliseconds(20000)) {
    auto system = DnsSystem::Read({.servers = std::move(servers), .timeout = timeout, .tries = 2});
    ASSERT_TRUE(system.ok()) << system.error().detail;
    const runtime::Worker::ScopedCurrentForTest current(time.worker);
    channel = std::make_unique<DnsChannel>(std::move(*system));
  }
  void Ask(const std::string& name, DnsType type = DnsType::kA) {
    const runtime::Worker::ScopedCurrentForTest current(time.worker);
    channel->Ask(name, type, [this](DnsReply reply) { replies.push_back(std::move(reply)); });
  }
  void Close() {
    const runtime::Worker::ScopedCurrentForTest current(time.worker);
    channel.reset();
  }
  // c-ares goes by the system's clock: that of the worker only has to go on.
  void RunUntilReplies(size_t count) {
    time.RunUntil([&] {
      time.clock.Advance(milliseconds(1));
      return replies.size() >= count;
    });
  }

  DnsServer server;
  test::SocketWorker time;
  std::unique_ptr<DnsChannel> channel;
  std::vector<DnsReply> replies;
};

TEST_F(DnsChannelTest, AnAnswerComesByUdp) {
  server.SetAddresses("users.test", {"10.0.0.1", "10.0.0.2"});
  Open({server.address()});
  Ask("users.test");
  RunUntilReplies(1);
  EXPECT_EQ(replies[0].hosts, (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
  EXPECT_EQ(server.asked_by_tcp(), 0);
  Close();
}

TEST_F(DnsChannelTest, ATruncatedAnswerIsAskedForByTcp) {
  std::vector<std::string> ips;
  for (int i = 1; i <= 200; ++i) ips.push_back("10.0.0." + std::to_string(i));
  server.SetAddresses("users.test", ips);
  Open({server.address()});
  Ask("users.test");
  RunUntilReplies(1);
  EXPECT_EQ(replies[0].hosts, ips);
  EXPECT_EQ(server.asked_by_tcp(), 1);
  Close();
}

// Several messages in one TCP segment: c-ares reads one at a time, and edges are told once.
TEST_F(DnsChannelTest, ManyTruncatedAnswersShareAConnection) {
  constexpr size_t kNames = 100;
  server.TruncateAll(true);
  for (size_t i = 0; i < kNames; ++i) server.SetAddresses("n" + std::to_string(i) + ".test", {"10.0.0.1"});
  Open({server.address()});
  for (size_t i = 0; i < kNames; ++i) Ask("n" + std::to_string(i) + ".test");
  RunUntilReplies(kNames);
  for (const DnsReply& reply : replies) EXPECT_EQ(reply.kind, Kind::kFound) << reply.error;
  EXPECT_GE(server.asked_by_tcp(), static_cast<int>(kNames));
  Close();
}

TEST_F(DnsChannelTest, AServerThatIsSilentIsTimedOut) {
  server.Silence("users.test", test::kDnsA);
  Open({server.address()}, milliseconds(50));
  Ask("users.test");
  RunUntilReplies(1);
  EXPECT_EQ(replies[0].kind, Kind::kFailed);
  EXPECT_THAT(replies[0].error, ::testing::HasSubstr("Timeout"));
  EXPECT_EQ(server.asked("users.test", test::kDnsA), 2) << "as often as it is to be tried";
  Close();
}

TEST_F(DnsChannelTest, ASilentOrFailingServerGivesWayToTheNext) {
  DnsServer silent, failing, refusing;
  silent.Silence("users.test", test::kDnsA);
  failing.Fail("users.test", test::kDnsA, test::kDnsServFail);
  refusing.Fail("users.test", test::kDnsA, test::kDnsRefused);
  server.SetAddresses("users.test", {"10.0.0.1"});
  std::string gone;
  {
    const DnsServer closed;
    gone = closed.address();
  }
  Open({silent.address(), failing.address(), refusing.address(), gone, server.address()}, milliseconds(500));
  Ask("users.test");
  RunUntilReplies(1);
  EXPECT_EQ(replies[0].kind, Kind::kFound) << replies[0].error;
  EXPECT_EQ(silent.asked("users.test", test::kDnsA), 1);
  EXPECT_EQ(failing.asked("users.test", test::kDnsA), 1);
  EXPECT_EQ(refusing.asked("users.test", test::kDnsA), 1);
  Close();
}

TEST_F(DnsChannelTest, EveryServerFailing) {
  server.Fail("users.test", test::kDnsA, test::kDnsServFail);
  Open({server.address()});
  Ask("users.test");
  RunUntilReplies(1);
  EXPECT_EQ(replies[0].kind, Kind::kFailed);
  Close();
}

TEST_F(DnsChannelTest, ANameThatIsNoneFailsAtOnce) {
  Open({server.address()});
  Ask(std::string(300, 'a'));
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].kind, Kind::kFailed);
  Close();
}

TEST_F(DnsChannelTest, TheEndInMidQuestionTellsNothing) {
  server.Silence("users.test", test::kDnsA);
  server.SetAddresses("large.test", std::vector<std::string>(200, "10.0.0.1"));
  Open({server.address()});
  Ask("users.test");
  Ask("large.test");
  time.RunUntil([&] { return server.asked() >= 2; });
  Close();
  time.clock.Advance(std::chrono::seconds(10));
  time.Run();
  EXPECT_LE(replies.size(), 1u) << "of large.test";
}

TEST_F(DnsChannelTest, TheEndWithoutAQuestion) {
  Open({server.address()});
  Close();
  time.Run();
}

}  // namespace
}  // namespace sluice::net

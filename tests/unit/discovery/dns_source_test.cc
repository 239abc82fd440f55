// The DNS source against a DNS server on loopback: what it hears, when it asks, and what it makes of servers that fail.
#include "discovery/dns/dns_source.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "integration/support/temp_dir.h"
#include "support/captured_log.h"
#include "support/dns_server.h"
#include "support/socket_worker.h"

namespace sluice::discovery {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::DnsRecord;
using test::DnsServer;
using test::kDnsA;
using test::kDnsAaaa;
using test::kDnsSrv;

const std::string kName = "users.test";

class DnsSourceTest : public ::testing::Test {
 protected:
  DnsSourceTest() {
    options.name = kName;
    options.port = 5;
    options.servers = {server.address()};
    settings.timeout = seconds(20);  // a busy machine is no silent server
    settings.resolv_conf = dir.Write("resolv.conf", "");
  }
  ~DnsSourceTest() override { time.runtime.Shutdown(); }
  void Start() {
    time.runtime.SpawnPinOnStart(Follow(*this));
    time.Run();
  }
  static runtime::Task<void> Follow(DnsSourceTest& test) {
    Bell bell;
    DnsSource source(test.options, test.own, bell, test.settings);
    test.source = &source;
    test.bell = &bell;
    while (!test.stopped) {
      runtime::Task<Answer> next = source.Next(base::kNever);
      const Answer answer = co_await std::move(next);
      if (const auto* error = std::get_if<std::string>(&answer)) test.heard = "error: " + *error;
      if (const auto* list = std::get_if<List>(&answer)) {
        test.heard.clear();
        for (const auto& e : *list) test.heard += (test.heard.empty() ? "" : " ") + e.name;
        test.list = *list;
      }
      test.answers += answer.index() == 0 ? 0 : 1;
    }
    test.source = nullptr;
  }
  // The next answer; the clock stands still, or goes on a little where timers of questions are to run out.
  std::string Next(base::Nanos step = {}) {
    const int before = answers;
    time.RunUntil([&] {
      time.clock.Advance(step);
      return answers > before;
    });
    return heard;
  }
  std::string First(base::Nanos step = {}) {
    const int before = answers;
    Start();
    return answers > before ? heard : Next(step);
  }
  std::string After(base::Nanos wait) {
    time.clock.Advance(wait);
    return Next();
  }
  void Stop() {
    stopped = true;
    bell->Ring();
    time.Run();
  }
  static std::vector<std::string> Ips(int count) {
    std::vector<std::string> ips;
    for (int i = 0; i < count; ++i)
      ips.push_back("10.1." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250));
    return ips;
  }

  integration::TempDir dir;
  DnsServer server;
  DnsOptions options;
  DnsSource::Own own;
  net::DnsSettings settings;
  test::SocketWorker time;
  DnsSource* source = nullptr;
  Bell* bell = nullptr;
  bool stopped = false;
  std::string heard = "nothing";
  List list;
  int answers = 0;
};

TEST_F(DnsSourceTest, AddressesOfBothFamiliesAreEndpoints) {
  server.SetAddresses(kName, {"10.0.0.2", "10.0.0.1", "2001:db8::1"});
  EXPECT_EQ(First(), "10.0.0.1:5 10.0.0.2:5 [2001:db8::1]:5");
}

TEST_F(DnsSourceTest, AnAnswerIsGoodForItsTimeToLive) {
  server.SetAddresses(kName, {"10.0.0.1"}, 7);
  EXPECT_EQ(First(), "10.0.0.1:5");
  server.SetAddresses(kName, {"10.0.0.2"}, 7);
  time.clock.Advance(seconds(7) - milliseconds(5));
  time.Run();
  EXPECT_EQ(server.asked(kName, kDnsA), 1) << "a name without AAAA is not asked for earlier";
  EXPECT_EQ(After(milliseconds(10)), "10.0.0.2:5");
  EXPECT_EQ(server.asked(kName, kDnsA), 2);
}

TEST_F(DnsSourceTest, TimesToLiveAreBounded) {
  server.SetAddresses(kName, {"10.0.0.1"}, 0);
  First();
  server.SetAddresses(kName, {"10.0.0.1"}, 1'000'000);
  time.clock.Advance(milliseconds(900));
  time.Run();
  EXPECT_EQ(answers, 1);
  After(milliseconds(110));
  time.clock.Advance(hours(1) - seconds(1));
  time.Run();
  EXPECT_EQ(answers, 2);
  After(seconds(2));
  EXPECT_EQ(server.asked(kName, kDnsA), 3);
}

TEST_F(DnsSourceTest, HurriedItAsksAtOnce) {
  server.SetAddresses(kName, {"10.0.0.1"}, 3600);
  First();
  server.SetAddresses(kName, {"10.0.0.2"}, 3600);
  time.clock.Advance(seconds(1));
  source->Hurry();
  bell->Ring();
  EXPECT_EQ(Next(), "10.0.0.2:5");
}

TEST_F(DnsSourceTest, AliasesAreFollowed) {
  server.Set(kName, {DnsRecord::Cname("a.test", 60)});
  server.Set("a.test", {DnsRecord::Cname("b.test", 3)});
  server.SetAddresses("b.test", {"10.0.0.1"}, 60);
  EXPECT_EQ(First(), "10.0.0.1:5");
  server.SetAddresses("b.test", {"10.0.0.2"}, 60);
  EXPECT_EQ(After(seconds(3) + milliseconds(5)), "10.0.0.2:5");
}

TEST_F(DnsSourceTest, AHundredAddressesComeByTcp) {
  server.SetAddresses(kName, Ips(100));
  First();
  EXPECT_EQ(list.size(), 100u);
  EXPECT_EQ(server.asked_by_tcp(), 1);
}

TEST_F(DnsSourceTest, ANameThatIsNotThereIsAnEmptyAnswer) {
  EXPECT_EQ(First(), "");
  server.SetAddresses(kName, {"10.0.0.1"});
  EXPECT_EQ(After(net::DnsReply::kNoneTtl + milliseconds(5)), "10.0.0.1:5");
  server.Remove(kName);
  EXPECT_EQ(After(seconds(61)), "");
}

TEST_F(DnsSourceTest, AServerThatFailsIsAskedAgain) {
  server.Fail(kName, kDnsA);
  server.Fail(kName, kDnsAaaa);
  EXPECT_EQ(First(), "error: users.test A: no server could be reached, or each failed or refused");
  server.Mend(kName, kDnsA);
  server.Mend(kName, kDnsAaaa);
  server.SetAddresses(kName, {"10.0.0.1"});
  EXPECT_EQ(After(DnsSource::kRetry + milliseconds(5)), "10.0.0.1:5");
}

TEST_F(DnsSourceTest, NoAnswerIsAnError) {
  server.Silence(kName, kDnsA);
  server.Silence(kName, kDnsAaaa);
  settings.timeout = milliseconds(50);
  EXPECT_EQ(First(milliseconds(1)), "error: users.test A: Timeout while contacting DNS servers");
}

TEST_F(DnsSourceTest, ASilentServerGivesWayToTheNext) {
  DnsServer second;
  second.SetAddresses(kName, {"10.0.0.1"});
  server.Silence(kName, kDnsA);
  server.Silence(kName, kDnsAaaa);
  options.servers.push_back(second.address());
  settings.timeout = milliseconds(300);
  EXPECT_EQ(First(milliseconds(1)), "10.0.0.1:5");
}

TEST_F(DnsSourceTest, AFamilyThatTheServerDoesNotKnowIsNotMissed) {
  server.SetAddresses(kName, {"10.0.0.1"});
  server.Fail(kName, kDnsAaaa, test::kDnsRefused);
  EXPECT_EQ(First(), "10.0.0.1:5");
}

// Half of a list is none: the other half would get all keys.
TEST_F(DnsSourceTest, AFamilyThatWasThereAndFailsIsAnError) {
  server.SetAddresses(kName, {"10.0.0.1", "2001:db8::1"}, 1);
  EXPECT_EQ(First(), "10.0.0.1:5 [2001:db8::1]:5");
  server.Fail(kName, kDnsAaaa);
  EXPECT_EQ(After(seconds(2)), "error: users.test AAAA: no server could be reached, or each failed or refused");
  server.Mend(kName, kDnsAaaa);
  server.SetAddresses(kName, {"10.0.0.1"}, 1);
  EXPECT_EQ(After(seconds(3)), "10.0.0.1:5") << "now it is known to be gone";
}

// Also one whose zone is broken for good does not freeze the list.
TEST_F(DnsSourceTest, AFamilyThatDoesNothingButFailIsGivenUp) {
  test::CapturedLog log;
  own.family_kept = seconds(40);
  server.SetAddresses(kName, {"10.0.0.1", "2001:db8::1"}, 1);
  First();
  server.Fail(kName, kDnsAaaa);
  server.SetAddresses(kName, {"10.0.0.2"}, 1);
  const std::string error = "error: users.test AAAA: no server could be reached, or each failed or refused";
  EXPECT_EQ(After(seconds(2)), error);
  for (int i = 0; i < 13; ++i) EXPECT_EQ(After(seconds(3)), error) << i;
  EXPECT_EQ(log.Take(), "");
  EXPECT_EQ(After(seconds(3)), "10.0.0.2:5");
  EXPECT_EQ(
      log.Take(),
      "warning dns users.test:5: AAAA of users.test has done nothing but fail for 42 s: its addresses are given up "
      "(users.test AAAA: no server could be reached, or each failed or refused)\n");
  EXPECT_EQ(After(seconds(2)), "10.0.0.2:5") << "it is not waited for again";
  server.Mend(kName, kDnsAaaa);
  server.SetAddresses(kName, {"10.0.0.2", "2001:db8::1"}, 1);
  EXPECT_EQ(After(seconds(2)), "10.0.0.2:5 [2001:db8::1]:5");
  server.Fail(kName, kDnsAaaa);
  EXPECT_EQ(After(seconds(2)), error) << "it has been there again";
  EXPECT_EQ(log.Take(), "") << "it is told once";
}

// What is asked for in vain together with the other family is the server's fault, or the network's.
TEST_F(DnsSourceTest, AFamilyIsNotGivenUpWhileTheOtherOneFailsNowAndThen) {
  server.SetAddresses(kName, {"10.0.0.1", "2001:db8::1"}, 1);
  First();
  server.Fail(kName, kDnsAaaa);
  for (int i = 0; i < 10; ++i) {
    server.Fail(kName, kDnsA);
    EXPECT_EQ(After(seconds(10)).rfind("error: ", 0), 0u) << i;
    server.Mend(kName, kDnsA);
    EXPECT_EQ(After(seconds(10)).rfind("error: ", 0), 0u) << i;
  }
  server.Mend(kName, kDnsAaaa);
  EXPECT_EQ(After(seconds(10)), "10.0.0.1:5 [2001:db8::1]:5");
}

// A name that has no other family is not given up.
TEST_F(DnsSourceTest, TheOnlyFamilyIsNotGivenUp) {
  server.SetAddresses(kName, {"2001:db8::1"}, 1);
  First();
  server.Fail(kName, kDnsAaaa);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(After(seconds(10)).rfind("error: ", 0), 0u) << i;
}

// Each target for itself: one that has failed for a while does not take its time to others that fail since then.
TEST_F(DnsSourceTest, AFamilyOfATargetIsGivenUpToo) {
  options.records = DnsRecords::kSrv;
  server.Set(kName, {DnsRecord::Srv(0, 1, 1, "a.test", 1), DnsRecord::Srv(0, 1, 2, "b.test", 1)});
  server.SetAddresses("a.test", {"10.0.0.1", "2001:db8::1"}, 1);
  server.SetAddresses("b.test", {"10.0.0.2", "2001:db8::2"}, 1);
  EXPECT_EQ(First(), "10.0.0.1:1 10.0.0.2:2 [2001:db8::1]:1 [2001:db8::2]:2");
  server.Fail("a.test", kDnsAaaa);
  EXPECT_EQ(After(seconds(20)).rfind("error: a.test AAAA", 0), 0u);
  server.Fail("b.test", kDnsAaaa);
  EXPECT_EQ(After(seconds(20)).rfind("error: ", 0), 0u) << "b.test fails since now";
  EXPECT_EQ(After(seconds(20)).rfind("error: ", 0), 0u) << "a.test is given up";
  EXPECT_EQ(After(seconds(20)), "10.0.0.1:1 10.0.0.2:2");
}

TEST_F(DnsSourceTest, ServicesHavePortsWeightsAndPriorities) {
  options.records = DnsRecords::kSrv;
  server.Set(kName, {DnsRecord::Srv(10, 60, 1, "a.test"), DnsRecord::Srv(10, 30, 2, "b.test"),
                     DnsRecord::Srv(20, 1, 3, "b.test"), DnsRecord::Srv(10, 1, 4, "gone.test")});
  server.SetAddresses("a.test", {"10.0.0.1", "2001:db8::1"});
  server.SetAddresses("b.test", {"10.0.0.2"});
  EXPECT_EQ(First(), "10.0.0.1:1 10.0.0.2:2 10.0.0.2:3 [2001:db8::1]:1");
  EXPECT_EQ(list[0].weight, 1);
  EXPECT_EQ(list[1].weight, 0.5);
  EXPECT_EQ(list[2].priority, 1u);
  EXPECT_EQ(server.asked("b.test", kDnsA), 1) << "once for both ports";
}

TEST_F(DnsSourceTest, ATargetThatCannotBeAskedForIsAnError) {
  options.records = DnsRecords::kSrv;
  server.Set(kName, {DnsRecord::Srv(0, 1, 1, "a.test"), DnsRecord::Srv(0, 1, 2, "b.test")});
  server.SetAddresses("a.test", {"10.0.0.1"});
  server.Fail("b.test", kDnsA);
  server.Fail("b.test", kDnsAaaa);
  EXPECT_EQ(First(), "error: b.test A: no server could be reached, or each failed or refused");
}

TEST_F(DnsSourceTest, AServiceThatIsNotOffered) {
  options.records = DnsRecords::kSrv;
  server.Set(kName, {DnsRecord::Srv(0, 0, 0, ".")});
  EXPECT_EQ(First(), "");
}

TEST_F(DnsSourceTest, AServiceWithTheNameOfItsHost) {
  options.records = DnsRecords::kSrv;
  server.Set(kName, {DnsRecord::Srv(0, 0, 9, kName), DnsRecord::Address("10.0.0.1")});
  EXPECT_EQ(First(), "10.0.0.1:9");
}

TEST_F(DnsSourceTest, FewQuestionsAreOutAtOnce) {
  options.records = DnsRecords::kSrv;
  settings.timeout = seconds(60);
  std::vector<DnsRecord> records;
  for (uint16_t i = 0; i < 100; ++i) {
    const std::string host = "h" + std::to_string(i) + ".test";
    records.push_back(DnsRecord::Srv(0, 1, 1, host));
    server.SetAddresses(host, {"10.0.0." + std::to_string(i + 1)}, 1);
    if (i >= 50) {
      server.Silence(host, kDnsA);
      server.Silence(host, kDnsAaaa);
    }
  }
  server.Set(kName, std::move(records));
  Start();
  const int all = 2 * 50 + static_cast<int>(DnsRound::kQuestionsMax);
  const auto asked = [&] { return server.asked() - server.asked(kName, kDnsSrv); };
  time.RunUntil([&] { return asked() >= all; });
  time.Run();
  EXPECT_EQ(asked(), all);
  EXPECT_EQ(answers, 0);
}

// A thousand targets that are good for a second are not asked for every second.
TEST_F(DnsSourceTest, RoundsOfManyQuestionsAreFurtherApart) {
  options.records = DnsRecords::kSrv;
  std::vector<DnsRecord> records;
  for (uint16_t i = 0; i < 300; ++i) {
    const std::string host = "h" + std::to_string(i) + ".test";
    records.push_back(DnsRecord::Srv(0, 1, 1, host, 1));
    server.SetAddresses(host, {Ips(300)[i]}, 1);
  }
  server.Set(kName, std::move(records));
  First();
  EXPECT_EQ(list.size(), 300u);
  EXPECT_EQ(server.asked() - server.asked(kName, kDnsSrv), 600);
  source->Hurry();
  bell->Ring();
  time.clock.Advance(600 * DnsSource::kPerQuestion - milliseconds(100));
  time.Run();
  EXPECT_EQ(answers, 1);
  After(seconds(1));
}

TEST_F(DnsSourceTest, MoreAddressesThanAListMayHaveAreAnError) {
  options.records = DnsRecords::kSrv;
  server.Set(kName,
             {DnsRecord::Srv(0, 1, 1, "a.test"), DnsRecord::Srv(0, 1, 2, "a.test"), DnsRecord::Srv(0, 1, 3, "a.test")});
  server.SetAddresses("a.test", Ips(4000));
  EXPECT_EQ(First(), "error: more than 10000 addresses");
}

TEST_F(DnsSourceTest, OneStaysWhereItIs) {
  options.mode = DnsMode::kOne;
  server.SetAddresses(kName, {"10.0.0.2"}, 1);
  EXPECT_EQ(First(), "users.test:5");
  server.SetAddresses(kName, {"10.0.0.1", "10.0.0.2"}, 1);
  After(seconds(2));
  EXPECT_EQ(list[0].address.ToString(), "10.0.0.2:5");
  server.SetAddresses(kName, {"10.0.0.1"}, 1);
  After(seconds(2));
  EXPECT_EQ(list[0].address.ToString(), "10.0.0.1:5");
}

// After a restart, too.
TEST_F(DnsSourceTest, OneBeginsWhereItWas) {
  options.mode = DnsMode::kOne;
  own.current = "10.0.0.2:5";
  server.SetAddresses(kName, {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, 1);
  for (own.seed = 0; own.seed < 8; ++own.seed) {
    stopped = false;
    First();
    EXPECT_EQ(list[0].address.ToString(), "10.0.0.2:5") << "seed " << own.seed;
    Stop();
  }
  own.current = "10.0.0.9:5";
  stopped = false;
  First();
  EXPECT_NE(list[0].address.ToString(), "10.0.0.9:5");
}

TEST_F(DnsSourceTest, OneIsDrawnByTheSeed) {
  options.mode = DnsMode::kOne;
  server.SetAddresses(kName, {"10.0.0.1", "10.0.0.2"}, 1);
  std::set<std::string> drawn;
  for (own.seed = 0; own.seed < 16; ++own.seed) {
    stopped = false;
    First();
    drawn.insert(list[0].address.ToString());
    Stop();
  }
  EXPECT_EQ(drawn.size(), 2u);
}

TEST_F(DnsSourceTest, SearchDomainsAreTriedUntilOneHasTheName) {
  dir.Write("resolv.conf", "search one.test two.test\noptions ndots:2\n");
  options.name = "users";
  server.SetAddresses("users.two.test", {"10.0.0.2"}, 1);
  server.SetAddresses("users", {"10.0.0.3"}, 1);
  EXPECT_EQ(First(), "10.0.0.2:5");
  EXPECT_EQ(server.asked("users", kDnsA), 0);
  // The file is read by each round.
  dir.Write("resolv.conf", "search three.test\n");
  EXPECT_EQ(After(seconds(2)), "10.0.0.3:5");
}

// What cannot be asked for is not taken for a name that is not there, nor for another name.
TEST_F(DnsSourceTest, ANameOfTheSearchThatFailsIsAnErrorIfNoOtherIsFound) {
  dir.Write("resolv.conf", "search one.test two.test\noptions ndots:2\n");
  options.name = "users";
  server.SetAddresses("users.one.test", {"10.0.0.1"}, 1);
  server.SetAddresses("users", {"10.0.0.3"}, 1);
  EXPECT_EQ(First(), "10.0.0.1:5");
  server.Fail("users.one.test", kDnsA);
  EXPECT_EQ(After(seconds(2)), "error: users.one.test A: no server could be reached, or each failed or refused");
  EXPECT_EQ(server.asked("users", kDnsA), 0);
  server.Mend("users.one.test", kDnsA);
  server.Remove("users.one.test");
  EXPECT_EQ(After(seconds(3)), "10.0.0.3:5");
  server.Remove("users");
  server.Fail("users.two.test", kDnsA);
  server.Fail("users.two.test", kDnsAaaa);
  EXPECT_EQ(After(seconds(2)), "error: users.two.test A: no server could be reached, or each failed or refused");
}

TEST_F(DnsSourceTest, AFileOfHostsComesFirst) {
  options.name = "localhost";
  const std::string hosts = First();
  EXPECT_NE(hosts.find("127.0.0.1:5"), std::string::npos) << hosts;
  EXPECT_EQ(server.asked(), 0);
  EXPECT_EQ(After(DnsSource::kHostsPeriod + milliseconds(5)), hosts);
}

TEST_F(DnsSourceTest, ItEndsInMidQuestion) {
  server.Silence(kName, kDnsA);
  server.Silence(kName, kDnsAaaa);
  settings.timeout = seconds(60);
  Start();
  time.RunUntil([&] { return server.asked() == 2; });
  Stop();
  EXPECT_EQ(source, nullptr);
  EXPECT_EQ(time.runtime.LiveTasks(), 0u);
}

TEST_F(DnsSourceTest, TheRuntimeEndsInMidQuestion) {
  server.Silence(kName, kDnsA);
  server.Silence(kName, kDnsAaaa);
  settings.timeout = seconds(60);
  Start();
  time.RunUntil([&] { return server.asked() == 2; });
  time.runtime.Shutdown();
  EXPECT_EQ(time.runtime.LiveTasks(), 0u);
}

TEST_F(DnsSourceTest, ServersThatCannotBeAreAnError) {
  options.servers = {"nonsense"};
  EXPECT_EQ(First().rfind("error: servers nonsense: ", 0), 0u) << heard;
}

}  // namespace
}  // namespace sluice::discovery

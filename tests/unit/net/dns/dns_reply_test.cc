// Answers of DNS servers as values: what they say, and what is made of those that say nothing.
#include "net/dns/dns_reply.h"

#include <ares.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "support/dns_server.h"

namespace sluice::net {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using test::DnsMessage;
using test::DnsRecord;
using Kind = DnsReply::Kind;
using Strings = std::vector<std::string>;
using Records = std::vector<std::pair<std::string, DnsRecord>>;

DnsReply Read(DnsType type, const std::string& message, int status = ARES_SUCCESS) {
  return ReadReply(type, status, {reinterpret_cast<const uint8_t*>(message.data()), message.size()});
}
DnsReply ReadA(const Records& records) { return Read(DnsType::kA, DnsMessage("users.test", test::kDnsA, records)); }
DnsReply ReadSrv(const Records& records) {
  return Read(DnsType::kSrv, DnsMessage("users.test", test::kDnsSrv, records));
}

TEST(DnsReplyTest, AddressesAndTheLeastTimeToLive) {
  const DnsReply reply =
      ReadA({{"users.test", DnsRecord::Address("10.0.0.2", 300)}, {"users.test", DnsRecord::Address("10.0.0.1", 20)}});
  EXPECT_EQ(reply.kind, Kind::kFound);
  EXPECT_EQ(reply.hosts, (Strings{"10.0.0.2", "10.0.0.1"}));
  EXPECT_EQ(reply.ttl, seconds(20));
}

TEST(DnsReplyTest, AddressesOfTheOtherFamily) {
  const std::string message =
      DnsMessage("users.test", test::kDnsAaaa, {{"users.test", DnsRecord::Address("2001:db8:0::1", 20)}});
  const DnsReply reply = Read(DnsType::kAaaa, message);
  EXPECT_EQ(reply.hosts, (Strings{"2001:db8::1"}));
  EXPECT_EQ(Read(DnsType::kA, message).kind, Kind::kNone) << "of one family only";
}

TEST(DnsReplyTest, TimesToLiveAreBounded) {
  EXPECT_EQ(ReadA({{"users.test", DnsRecord::Address("10.0.0.1", 0)}}).ttl, seconds(1));
  EXPECT_EQ(ReadA({{"users.test", DnsRecord::Address("10.0.0.1", 7 * 86400)}}).ttl, hours(1));
  // RFC 2181 8: the first bit says zero.
  EXPECT_EQ(ReadA({{"users.test", DnsRecord::Address("10.0.0.1", 0x80000000u)}}).ttl, seconds(1));
  EXPECT_EQ(ReadSrv({{"users.test", DnsRecord::Srv(0, 0, 1, "a", 0)}}).ttl, seconds(1));
  EXPECT_EQ(ReadSrv({{"users.test", DnsRecord::Srv(0, 0, 1, "a", 7 * 86400)}}).ttl, hours(1));
  EXPECT_EQ(ReadSrv({{"users.test", DnsRecord::Srv(0, 0, 1, "a", 0x80000000u)}}).ttl, seconds(1));
}

TEST(DnsReplyTest, AliasesAreFollowedAndLimitTheTime) {
  const DnsReply reply = ReadA({{"users.test", DnsRecord::Cname("a.test", 300)},
                                {"a.test", DnsRecord::Cname("b.test", 9)},
                                {"b.test", DnsRecord::Address("10.0.0.1", 60)}});
  EXPECT_EQ(reply.hosts, (Strings{"10.0.0.1"}));
  EXPECT_EQ(reply.ttl, seconds(9));
  const DnsReply srv =
      ReadSrv({{"users.test", DnsRecord::Cname("a.test", 4)}, {"a.test", DnsRecord::Srv(0, 0, 1, "h.test", 60)}});
  ASSERT_EQ(srv.targets.size(), 1u);
  EXPECT_EQ(srv.ttl, seconds(4));
  EXPECT_EQ(ReadA({{"users.test", DnsRecord::Cname("a.test", 300)}}).kind, Kind::kNone);
}

TEST(DnsReplyTest, AHundredAddresses) {
  Records records;
  for (int i = 0; i < 100; ++i)
    records.emplace_back("users.test", DnsRecord::Address("10.0.0." + std::to_string(i + 1)));
  const DnsReply reply = ReadA(records);
  ASSERT_EQ(reply.hosts.size(), 100u);
  EXPECT_EQ(reply.hosts.back(), "10.0.0.100");
}

TEST(DnsReplyTest, AsManyAddressesAsAMessageHas) {
  const Records records(4000, {"users.test", DnsRecord::Address("10.0.0.1")});
  EXPECT_EQ(ReadA(records).hosts.size(), 4000u);
}

TEST(DnsReplyTest, ServicesWithPortsWeightsAndPriorities) {
  const DnsReply reply = ReadSrv({{"users.test", DnsRecord::Srv(10, 60, 50051, "a.test", 30)},
                                  {"users.test", DnsRecord::Srv(20, 0, 50052, "b.test", 40)}});
  EXPECT_EQ(reply.kind, Kind::kFound);
  EXPECT_EQ(reply.targets, (std::vector<DnsTarget>{{"a.test", 50051, 10, 60}, {"b.test", 50052, 20, 0}}));
  EXPECT_EQ(reply.ttl, seconds(30));
}

// RFC 2782.
TEST(DnsReplyTest, ATargetThatIsTheRootSaysThatThereIsNoService) {
  EXPECT_EQ(ReadSrv({{"users.test", DnsRecord::Srv(0, 0, 1, ".")}}).kind, Kind::kNone);
  const DnsReply reply =
      ReadSrv({{"users.test", DnsRecord::Srv(0, 0, 1, ".")}, {"users.test", DnsRecord::Srv(0, 0, 1, "a.test")}});
  EXPECT_EQ(reply.targets.size(), 1u);
}

TEST(DnsReplyTest, NoNameAndNoRecordsAreAnswersAndOthersAreFailures) {
  const DnsReply none = Read(DnsType::kA, "", ARES_ENOTFOUND);
  EXPECT_EQ(none.kind, Kind::kNone);
  EXPECT_EQ(none.ttl, DnsReply::kNoneTtl);
  EXPECT_EQ(Read(DnsType::kA, "", ARES_ENODATA).kind, Kind::kNone);
  for (const int status : {ARES_ESERVFAIL, ARES_EREFUSED, ARES_ETIMEOUT, ARES_EBADRESP, ARES_EBADNAME, ARES_ENOMEM}) {
    const DnsReply reply = Read(DnsType::kA, "", status);
    EXPECT_EQ(reply.kind, Kind::kFailed);
    EXPECT_EQ(reply.error, ares_strerror(status));
  }
}

TEST(DnsReplyTest, AMessageThatIsCutOffAnywhereIsAFailureOrLess) {
  const Records addresses(3, {"users.test", DnsRecord::Address("10.0.0.1")});
  const Records services(3, {"users.test", DnsRecord::Srv(1, 2, 3, "a.test")});
  for (const auto& [type, number, records] :
       {std::tuple(DnsType::kA, test::kDnsA, &addresses), std::tuple(DnsType::kSrv, test::kDnsSrv, &services)}) {
    const std::string whole = DnsMessage("users.test", number, *records);
    for (size_t size = 0; size < whole.size(); ++size) {
      const DnsReply reply = Read(type, whole.substr(0, size));
      EXPECT_LE(reply.hosts.size() + reply.targets.size(), 2u) << size;
      EXPECT_EQ(reply.kind == Kind::kFailed, !reply.error.empty()) << size;
    }
  }
}

TEST(DnsReplyTest, NamesThatPointAtThemselvesAreAFailure) {
  std::string message = DnsMessage("users.test", test::kDnsSrv, {});
  message[7] = 1;  // one answer
  message += std::string("\xc0", 1) + static_cast<char>(message.size()) + test::DnsNumber(33, 2) + "rest";
  EXPECT_EQ(Read(DnsType::kSrv, message).kind, Kind::kFailed);
}

TEST(DnsReplyTest, CountsAboveWhatIsThereAreAFailure) {
  std::string message = DnsMessage("users.test", test::kDnsA, {{"users.test", DnsRecord::Address("10.0.0.1")}});
  message[6] = message[7] = '\xff';
  EXPECT_EQ(Read(DnsType::kA, message).kind, Kind::kFailed);
}

}  // namespace
}  // namespace sluice::net

// x-request-id: which one endpoints are told, and what records say of it.
#include "proxy/call/request_id.h"

#include <gtest/gtest.h>

#include <set>

#include "proxy/insight/insight.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::Headers;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

using Texts = std::vector<std::string>;
const std::string kLongest(kRequestIdBytesMax, 'x');

// "xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx" (RFC 9562 4 and 5.4).
bool IsUuid(const std::string& text) {
  if (text.size() != kMadeRequestIdBytes) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : std::string_view("0123456789abcdef").find(text[i]) == std::string_view::npos)
      return false;
  }
  return text[14] == '4' && std::string_view("89ab").find(text[19]) != std::string_view::npos;
}

// What the access log and all other observers are told.
class Ids final : public CallObserver {
 public:
  void OnCallEnd(const CallRecord& record, uint32_t) override {
    (record.fetch ? of_fetches : of_calls).emplace_back(record.request_id);
  }
  Texts of_calls, of_fetches;
};

class RequestIdTest : public test::ProxyFixture {
 public:
  RequestIdTest() { observers.push_back(ids); }
  void Begin(const std::vector<std::string>& addresses = {"10.0.0.1:1"}) {
    Start(addresses);
    client = &Client();
  }
  void Ask(const Fields& fields = {}) {
    asked += 2;
    client->Send(Headers(asked, Block(With(GrpcRequest(), fields)), kLast));
    Run();
  }
  // One call; each x-request-id that its endpoint was told.
  Texts Told(const Fields& fields) {
    if (client == nullptr) Begin();
    Ask(fields);
    Respond(Up(), asked, "answer");
    Run();
    EXPECT_EQ(client->streams[asked].Value("grpc-status"), "0");
    for (const Fields& block : client->streams[asked].headers)
      EXPECT_TRUE(In(block).empty()) << "the client is not told";
    return In(Up().streams[asked].headers[0]);
  }
  static Texts In(const Fields& fields) {
    Texts out;
    for (const auto& [name, value] : fields) {
      if (name == "x-request-id") out.push_back(value);
    }
    return out;
  }
  void ExpectMade(const Fields& fields) {
    const auto told = Told(fields);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_TRUE(IsUuid(told[0])) << told[0];
    EXPECT_TRUE(made.insert(told[0]).second) << told[0] << " was made before";
    EXPECT_EQ(ids->of_calls.back(), told[0]);
  }

  const std::shared_ptr<Ids> ids = std::make_shared<Ids>();
  std::set<std::string> made;
  FramePeer* client = nullptr;
  uint32_t asked = static_cast<uint32_t>(-1);
};

TEST_F(RequestIdTest, WhileOffItIsMetadataAsAnyOther) {
  EXPECT_EQ(Told({}), Texts());
  EXPECT_EQ(ids->of_calls.back(), "");
  EXPECT_EQ(Told({{"x-request-id", "one"}}), Texts({"one"}));
  EXPECT_EQ(ids->of_calls.back(), "one");
  EXPECT_EQ(Told({{"x-request-id", kLongest + "x"}, {"x-request-id", ""}}), Texts({kLongest + "x", ""}));
  EXPECT_EQ(ids->of_calls.back(), kLongest + "x");
}

TEST_F(RequestIdTest, AClientsIsKeptAndAMissingOneIsMade) {
  forwarding.request_id = RequestIds::kKeep;
  for (const std::string& id : {std::string("one"), std::string("a b~"), kLongest}) {
    EXPECT_EQ(Told({{"x-request-id", id}}), Texts({id}));
    EXPECT_EQ(ids->of_calls.back(), id);
  }
  ExpectMade({});
  ExpectMade({});
}

TEST_F(RequestIdTest, OneThatIsNoneIsReplaced) {
  forwarding.request_id = RequestIds::kKeep;
  ExpectMade({{"x-request-id", ""}});
  ExpectMade({{"x-request-id", kLongest + "x"}});
  ExpectMade({{"x-request-id", "caf\xc3\xa9"}});
  ExpectMade({{"x-request-id", "one"}, {"x-more", "1"}, {"x-request-id", "two"}});
}

TEST_F(RequestIdTest, WhereClientsAreNotTrustedEachIsReplaced) {
  forwarding.request_id = RequestIds::kReplace;
  ExpectMade({{"x-request-id", "one"}});
  ExpectMade({});
}

TEST_F(RequestIdTest, OfACallThatWasSentNowhereRecordsHaveWhatWouldHaveBeenKept) {
  for (const RequestIds rule : {RequestIds::kOff, RequestIds::kKeep, RequestIds::kReplace}) {
    http2::HeaderList one, none, twice;
    one.Add("x-request-id", "one");
    twice.Add("x-request-id", "one");
    twice.Add("x-request-id", "two");
    EXPECT_EQ(RequestIdOf(rule, false, one), rule == RequestIds::kReplace ? "" : "one");
    EXPECT_EQ(RequestIdOf(rule, false, twice), rule == RequestIds::kOff ? "one" : "");
    EXPECT_EQ(RequestIdOf(rule, false, none), "");
  }
}

TEST_F(RequestIdTest, AttemptsOfOneCallHaveTheSame) {
  forwarding.request_id = RequestIds::kReplace;
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  routes[0].retry.attempts_max = 2;
  insight = std::make_shared<Insight>(InsightOptions(), workers);
  Begin({"10.0.0.1:1", "10.0.0.2:1"});
  Ask({{"x-request-id", "one"}});
  std::vector<std::string> order = {"10.0.0.1:1", "10.0.0.2:1"};
  if (!Connected(order[0]) || Up(order[0]).streams[1].headers.empty()) std::swap(order[0], order[1]);
  for (const std::string& address : order) {
    Up(address).Send(Headers(1, Block(With(h2::GrpcResponse(), h2::GrpcTrailers("14"))), kLast));
    Run();
  }
  const Texts first = In(Up(order[0]).streams[1].headers.at(0));
  EXPECT_EQ(first, In(Up(order[1]).streams[1].headers.at(0)));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(IsUuid(first[0]));
  ASSERT_EQ(client->streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(ids->of_calls, first);
  ASSERT_EQ(insight->failed.Read().calls.size(), 1u);
  EXPECT_EQ(insight->failed.Read().calls[0].request_id, first[0]);
}

TEST_F(RequestIdTest, AHedgeHasThatOfTheOther) {
  forwarding.request_id = RequestIds::kKeep;
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  routes[0].hedge = {milliseconds(20), 1};
  Begin({"10.0.0.1:1", "10.0.0.2:1"});
  Ask();
  Advance(milliseconds(21));
  const auto first = In(Up("10.0.0.1:1").streams[1].headers.at(0));
  EXPECT_EQ(first, In(Up("10.0.0.2:1").streams[1].headers.at(0)));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(IsUuid(first[0]));
}

TEST_F(RequestIdTest, AFetchOfTheCacheHasThatOfTheCallThatBeganIt) {
  forwarding.request_id = RequestIds::kReplace;
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  Begin();
  const auto ask = [&](uint32_t id) {
    client->Send(Headers(id, Block(With(GrpcRequest(), {{"x-request-id", "theirs"}}))) +
                 Data(id, h2::Message("question"), h2::kEndStream));
    Run();
  };
  ask(1);
  ask(3);  // joins
  const auto told = In(Up().streams[1].headers.at(0));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(IsUuid(told[0]));
  Respond(Up(), 1, h2::Message("answer"));
  Run();
  ask(5);  // a hit
  EXPECT_EQ(client->streams[5].Value("grpc-status"), "0");
  EXPECT_EQ(ids->of_fetches, told);
  EXPECT_EQ(ids->of_calls, Texts({told[0], "", ""}));
}

// So many that a number that is short, or not random, would be there twice.
TEST(MakeRequestId, AreUnique) {
  base::Random random(1);
  std::set<std::string> made;
  for (int i = 0; i < 100'000; ++i) {
    const auto id = MakeRequestId(random);
    ASSERT_TRUE(made.emplace(id.data(), id.size()).second);
  }
  for (const std::string& id : made) ASSERT_TRUE(IsUuid(id)) << id;
}

}  // namespace
}  // namespace sluice::proxy

// Requests that never become calls are counted by reason, and a bounded number of them is logged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "connection_fixture.h"
#include "support/captured_log.h"

namespace sluice::http2 {
namespace {

using ::testing::HasSubstr;

class RefusedTest : public ConnectionTest {
 public:
  RefusedTest() {
    context.abuse = FloodReports(&record_);
    options.session.concurrent_streams_max = 1;
    options.session.header_list_bytes_max = 4096;
  }
  void Say(uint32_t id, const h2::Fields& fields, uint8_t flags = h2::kEndHeaders | h2::kEndStream,
           const std::string& before = "") {
    peer->Send(h2::RawFrame(h2::kHeaders, flags, id, before + h2::Block(fields)));
    Run();
  }
  h2::Fields With(const std::string& name, const std::string& value) {
    h2::Fields fields = h2::GrpcRequest();
    fields.emplace_back(name, value);
    return fields;
  }
  uint64_t Count(Refusal refusal) const { return record_.refused[static_cast<size_t>(refusal)]->Value(); }

 protected:
  metrics::Registry registry_{2};
  FloodRecord record_{registry_};
};

TEST_F(RefusedTest, EachReasonIsCountedAndSaid) {
  Start(Role::kServer);
  test::CapturedLog said;
  Say(1, With("connection", "close"));
  EXPECT_EQ(Count(Refusal::kMalformed), 1u);
  EXPECT_THAT(said.Take(), HasSubstr("info client peer: request refused: malformed: "));
  Say(3, With("content-length", "5"));
  EXPECT_EQ(Count(Refusal::kMalformed), 2u);
  EXPECT_THAT(said.Take(), HasSubstr("it ends before its content-length"));
  Say(5, h2::GrpcRequest(), h2::kEndHeaders | h2::kEndStream | h2::kPriorityFlag, std::string("\0\0\0\x05\x10", 5));
  EXPECT_EQ(Count(Refusal::kSelfDependency), 1u);
  Say(7, With("x", std::string(5000, 'x')));
  EXPECT_EQ(Count(Refusal::kTooLarge), 1u);
  Say(9, {{":method", "CONNECT"}, {":authority", "x"}});
  EXPECT_EQ(Count(Refusal::kConnect), 1u);
  EXPECT_THAT(log, ::testing::IsEmpty());  // none of them was passed on
  said.Take();
  Say(11, h2::GrpcRequest(), h2::kEndHeaders);
  EXPECT_THAT(log, ::testing::ElementsAre("request 11"));
  EXPECT_EQ(said.Take(), "");
  Say(13, h2::GrpcRequest());
  EXPECT_EQ(Count(Refusal::kStreams), 1u);
  EXPECT_THAT(said.Take(), HasSubstr("request refused: streams_max: path \"/"));
  EXPECT_FALSE(connection->closed());
}

TEST_F(RefusedTest, OfManyTheLogHasAFewAndWhatTheyWereIsPrintable) {
  Start(Role::kServer);
  test::CapturedLog said;
  h2::Fields fields = With("connection", "close");
  for (auto& [name, value] : fields) {
    if (name == ":path") value = "/a\"\x01\xff" + std::string(400, 'p');
  }
  for (uint32_t i = 0; i < 30; ++i) Say(1 + 2 * i, fields);
  EXPECT_EQ(Count(Refusal::kMalformed), 30u);
  const std::string text = said.Take();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), base::LogLimit::kLines);
  EXPECT_THAT(text, HasSubstr("path \"/a???ppp"));
  EXPECT_THAT(text, HasSubstr("p...\"\n"));
  time.clock.Advance(base::LogLimit::kPeriod);
  Say(61, fields);
  EXPECT_THAT(said.Take(), HasSubstr("(and 20 lines of this kind before it)"));
}

}  // namespace
}  // namespace sluice::http2

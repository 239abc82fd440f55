// A conversation means the same wherever reads cut it.
#include <gtest/gtest.h>

#include <random>

#include "base/random.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;

constexpr uint8_t kEnd = h2::kEndHeaders | h2::kEndStream;

std::string Conversation() {
  std::string block = Block(h2::GrpcRequest());
  return h2::Preface() + h2::Settings({{4, 100}, {5, 20000}}) + h2::SettingsAck() + h2::Ping(1) +
         h2::Headers(1, block.substr(0, 10), 0) + h2::Continuation(1, block.substr(10, 3), 0) +
         h2::Continuation(1, block.substr(13)) + h2::PaddedData(1, "hello", 7) + h2::PaddedData(1, "", 0) +
         h2::RawFrame(h2::kHeaders, kEnd | h2::kPriorityFlag | h2::kPadded, 3,
                      h2::Big(2, 1) + h2::Big(0, 4) + "w" + block + "pp") +
         h2::Data(1, "world") + h2::WindowUpdate(1, 77) + h2::WindowUpdate(0, 1000) +
         h2::RawFrame(0x42, 0, 9, "unknown") + h2::Headers(5, Block({{"malformed", "request"}})) +
         h2::Data(5, "ignored") + h2::RawFrame(h2::kPriority, 0, 7, "abcde") + h2::Headers(7, block) +
         h2::RstStream(7, 8) + h2::Headers(1, Block({{"trailer", "t"}}), kEnd) + h2::Headers(9, block) +
         h2::PaddedData(9, "last", 255, h2::kEndStream) + h2::Goaway(0, 0, "done");
}

struct Outcome {
  std::vector<std::string> log;
  std::vector<std::string> data;
  std::string wire;
  bool operator==(const Outcome&) const = default;
};

// Feeds the pieces of the conversation that end at `cuts`.
Outcome Converse(const std::string& wire, std::vector<size_t> cuts) {
  SessionHarness server(Role::kServer);
  server.session->Start();
  cuts.push_back(wire.size());
  size_t at = 0;
  for (size_t cut : cuts) {
    EXPECT_TRUE(server.Feed(std::string_view(wire).substr(at, cut - at))) << server.error;
    at = cut;
  }
  Outcome outcome{server.log, {}, {}};
  for (auto& [id, recorder] : server.recorders) outcome.data.push_back(recorder->data);
  outcome.wire = server.Written();
  return outcome;
}

TEST(Split, AtEveryByteGivesTheSameEvents) {
  std::string wire = Conversation();
  Outcome whole = Converse(wire, {});
  ASSERT_EQ(whole.data, (std::vector<std::string>{"helloworld", "", "", "last"}));
  for (size_t cut = 1; cut < wire.size(); ++cut) {
    ASSERT_EQ(Converse(wire, {cut}), whole) << "cut at " << cut;
  }
}

TEST(Split, IntoSingleBytesGivesTheSameEvents) {
  std::string wire = Conversation();
  std::vector<size_t> cuts;
  for (size_t i = 1; i < wire.size(); ++i) cuts.push_back(i);
  EXPECT_EQ(Converse(wire, cuts), Converse(wire, {}));
}

TEST(Split, AnywhereGivesTheSameEvents) {
  uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  std::string wire = Conversation();
  Outcome whole = Converse(wire, {});
  for (int round = 0; round < 500; ++round) {
    std::vector<size_t> cuts;
    uint64_t stride = 1 + random.Below(200);
    for (size_t at = random.Below(stride); at < wire.size(); at += 1 + random.Below(stride)) cuts.push_back(at);
    ASSERT_EQ(Converse(wire, cuts), whole) << "round " << round;
  }
}

// Truncated or damaged input may fail, but only as a connection error.
TEST(Split, DamagedBytesNeverCrash) {
  uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  std::string wire = Conversation();
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = wire;
    for (uint64_t i = random.Below(4); i-- > 0;) {
      bytes[24 + random.Below(bytes.size() - 24)] = static_cast<char>(random.Below(256));
    }
    SessionHarness server(Role::kServer);
    server.session->Start();
    size_t cut = random.Below(bytes.size());
    if (server.Feed(bytes.substr(0, cut))) server.Feed(bytes.substr(cut));
    server.Written();
  }
}

}  // namespace
}  // namespace sluice::http2

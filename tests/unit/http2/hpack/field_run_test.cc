// FieldRun: what is remembered of repeated header blocks changes nothing but their price.
#include <gtest/gtest.h>

#include <random>

#include "base/random.h"
#include "http2/fields/validate.h"
#include "unit/http2/hpack/support.h"

namespace sluice::http2 {
namespace {

uint64_t NewSeed() {
  const uint64_t seed = std::random_device()();
  std::printf("[   seed   ] %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

constexpr DecodeLimits kNoLimits = {SIZE_MAX, SIZE_MAX};

// Blocks of a few kinds in any order, while the tables now and then change: what arrives is what was sent, by the
// coders that remember and by a hop behind them.
TEST(FieldRun, RepeatedBlocksArriveAsTheyWereSent) {
  base::Random random(NewSeed());
  InternTable interns;
  uint64_t runs = 0;
  for (int connection = 0; connection < 30; ++connection) {
    HpackEncoder client(interns), upstream(interns);
    HpackDecoder decoder(interns), backend(interns);
    std::vector<Pairs> kinds;
    for (int kind = 0; kind < 12; ++kind) {
      Pairs pairs = {{":method", "POST"}, {":scheme", "http"}};
      for (uint64_t i = random.Below(40); i > 0; --i) {
        pairs.emplace_back("name-" + std::to_string(random.Below(60)), std::string(random.Below(80), 'v'));
      }
      kinds.push_back(pairs);
    }
    for (int block = 0; block < 2000; ++block) {
      if (random.Below(100) == 0) {
        const size_t bytes = random.Below(3) == 0 ? 0 : random.Below(4097);
        client.SetPeerTableBytesMax(bytes);
        decoder.SetTableBytesMax(bytes);
      }
      if (random.Below(100) == 0) {
        const size_t bytes = random.Below(4097);
        upstream.SetPeerTableBytesMax(bytes);
        backend.SetTableBytesMax(bytes);
      }
      Pairs pairs = kinds[random.Below(random.Below(10) == 0 ? kinds.size() : 2)];
      HeaderList list(&interns);
      for (const auto& [name, value] : pairs) list.AddInterned(interns.Intern(name, value));
      for (uint64_t i = random.Below(4); i > 0; --i) {  // literals that are nearly always the same
        const std::string name = "literal-" + std::to_string(i);
        const std::string value(random.Below(20) == 0 ? random.Below(300) : 20, 'l');
        pairs.emplace_back(name, value);
        list.Add(name, value, i == 2 ? Indexing::kNever : Indexing::kLiteral);
      }
      if (random.Below(2) == 0) {  // of each call its own
        pairs.emplace_back("x-request-id", std::to_string(block));
        list.Add("x-request-id", std::to_string(block));
      }
      HeaderList received(&interns);
      ASSERT_EQ(decoder.Decode(EncodeToString(client, list), kNoLimits, received), DecodeResult::kOk);
      ASSERT_EQ(PairsOf(received), pairs);
      for (size_t i = 0; i < received.size(); ++i) {
        ASSERT_EQ(received[i].indexing == Indexing::kNever, list[i].indexing == Indexing::kNever);
      }
      size_t hpack_size = 0;
      for (const Field* field : received) hpack_size += field->hpack_size();
      ASSERT_EQ(received.hpack_size(), hpack_size);
      runs += received.run() != nullptr;
      HeaderList forwarded(&interns);
      ASSERT_EQ(backend.Decode(EncodeToString(upstream, received), kNoLimits, forwarded), DecodeResult::kOk);
      ASSERT_EQ(PairsOf(forwarded), pairs);
      ASSERT_EQ(upstream.table_bytes(), backend.table_bytes());
    }
  }
  EXPECT_GT(runs, 10'000u) << "the blocks hardly ever repeat: nothing was tested";
  EXPECT_EQ(interns.size(), 0u);
}

class RunTest : public testing::Test {
 protected:
  // A list that begins with a run of these, some of them transient by chance.
  HeaderList WithRun(const Pairs& pairs) {
    HeaderList fields(&interns_);
    for (const auto& [name, value] : pairs) {
      if (random_.Below(3) == 0) {
        fields.Add(name, value);
      } else {
        fields.AddInterned(interns_.Intern(name, value));
      }
    }
    FieldRun* run = interns_.MakeRun(fields.begin(), fields.size());
    EXPECT_EQ(run->count, pairs.size());
    fields.Clear();
    HeaderList list(&interns_);
    list.AddRun(*run);
    interns_.UnrefRun(run);
    return list;
  }
  ~RunTest() override { EXPECT_EQ(interns_.size(), 0u); }

  InternTable interns_;
  base::Random random_{NewSeed()};
};

TEST_F(RunTest, TakesNoMoreThanItHasRoomFor) {
  HeaderList fields(&interns_);
  for (int i = 0; i < 40; ++i) fields.AddInterned(interns_.Intern("n", std::to_string(i)));
  FieldRun* run = interns_.MakeRun(fields.begin(), fields.size());
  EXPECT_EQ(run->count, FieldRun::kCountMax);
  interns_.UnrefRun(run);
  HeaderList literals(&interns_);
  for (int i = 0; i < 40; ++i) literals.Add("name", std::string(100, 'v'));
  run = interns_.MakeRun(literals.begin(), literals.size());
  EXPECT_EQ(run->count, FieldRun::kLiteralBytesMax / 136);
  interns_.UnrefRun(run);
  HeaderList large(&interns_);
  large.Add("name", std::string(1000, 'v'));
  EXPECT_EQ(interns_.MakeRun(large.begin(), 1), nullptr);
}

TEST_F(RunTest, ListsChangeAsIfTheFieldsWereTheirOwn) {
  base::Random random(NewSeed());
  const std::pair<Token, const char*> kNames[] = {{Token::kPath, ":path"},
                                                  {Token::kTe, "te"},
                                                  {Token::kGrpcTimeout, "grpc-timeout"},
                                                  {Token::kVia, "via"},
                                                  {Token::kUserAgent, "user-agent"}};
  for (int round = 0; round < 5000; ++round) {
    Pairs model;
    for (uint64_t i = 1 + random.Below(9); i > 0; --i) {
      model.emplace_back(kNames[random.Below(5)].second, std::to_string(random.Below(4)));
    }
    HeaderList list = WithRun(model);
    for (int step = 0; step < 12; ++step) {
      const auto [token, name] = kNames[random.Below(5)];
      std::string value = std::to_string(random.Below(1000));
      if (random.Below(4) == 0) value.append(random.Below(300), 'v');  // for chunks of several sizes
      auto is = [name = name](const auto& pair) { return pair.first == name; };
      auto first = std::find_if(model.begin(), model.end(), is);
      switch (random.Below(6)) {
        case 0:
          list.Add(name, value);
          model.emplace_back(name, value);
          break;
        case 1:
          list.AddInterned(interns_.Intern(name, value));
          model.emplace_back(name, value);
          break;
        case 2:
          list.Remove(token);
          std::erase_if(model, is);
          break;
        case 3:
          list.Set(token, name, value);
          if (first == model.end()) {
            model.emplace_back(name, value);
          } else {
            first->second = value;
            model.erase(std::remove_if(first + 1, model.end(), is), model.end());
          }
          break;
        case 4:
          list.Compact();
          break;
        default: {
          HeaderList other = WithRun({{"te", "1"}});
          other = std::move(list);
          HeaderList moved(std::move(other));
          list = std::move(moved);
        }
      }
      ASSERT_EQ(PairsOf(list), model);
      for (const auto& [any, spelled] : kNames) {
        const Field* found = list.Find(any);
        auto at = std::find_if(model.begin(), model.end(), [s = spelled](const auto& pair) { return pair.first == s; });
        ASSERT_EQ(found != nullptr, at != model.end());
        if (found != nullptr) {
          ASSERT_EQ(found->value(), at->second);
        }
      }
      size_t hpack_size = 0;
      for (const Field* field : list) hpack_size += field->hpack_size();
      ASSERT_EQ(list.hpack_size(), hpack_size);
    }
  }
}

TEST_F(RunTest, TheVerdictOnAWholeRunIsThatOfItsKindAlone) {
  HeaderList headers = WithRun({{":status", "204"}, {"content-length", "7"}});
  HeaderList trailers = WithRun({{"grpc-status", "0"}});
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(ValidateResponse(headers).malformed, nullptr);
    EXPECT_EQ(ValidateResponse(headers).status, 204u);
    EXPECT_EQ(ValidateResponse(headers).content_length, 7);
    EXPECT_NE(ValidateTrailers(headers), nullptr);
    EXPECT_NE(ValidateRequest(headers).malformed, nullptr);
    EXPECT_EQ(ValidateTrailers(trailers), nullptr);
    EXPECT_NE(ValidateResponse(trailers).malformed, nullptr);
  }
  headers.Add(":status", "204");
  EXPECT_NE(ValidateResponse(headers).malformed, nullptr);
  trailers.Add("host", "a");
  EXPECT_NE(ValidateTrailers(trailers), nullptr);
}

TEST_F(RunTest, WhatFollowsAKnownRequestLineIsJudgedByEachRule) {
  const auto request = [this] {
    HeaderList list = WithRun({{":method", "POST"}, {":scheme", "http"}, {":path", "/a.B/C"}, {":authority", "a"}});
    EXPECT_EQ(ValidateRequest(list).malformed, nullptr);
    EXPECT_TRUE(list.run()->request_line);
    return list;
  };
  HeaderList plain = request();
  plain.Add("x-key", "user-17");
  plain.Add("grpc-timeout", "1S");
  EXPECT_EQ(ValidateRequest(plain).malformed, nullptr);
  const Pairs broken = {{":path", "/a.B/C"},
                        {":status", "200"},
                        {":protocol", "x"},
                        {"connection", "close"},
                        {"keep-alive", "1"},
                        {"te", "gzip"},
                        {"upgrade", "h2c"},
                        {"transfer-encoding", "chunked"},
                        {"proxy-connection", "x"},
                        {"host", "b"},
                        {"content-length", "-1"},
                        {"X-Key", "a"},
                        {"x key", "a"},
                        {"", "a"},
                        {"x-key", "a\nb"},
                        {"x-key", std::string(1, '\0')}};
  for (const auto& [name, value] : broken) {
    HeaderList list = request();
    list.Add(name, value);
    EXPECT_NE(ValidateRequest(list).malformed, nullptr) << name << ": " << value;
    EXPECT_NE(ValidateRequest(list).malformed, kToRespell) << name << ": " << value;
  }
  for (const auto& [name, value] : Pairs{{"x-key", " a"}, {"x-key", "a\t"}, {"x-bin", "%%%"}, {"x-bin", "YQ=="}}) {
    HeaderList list = request();
    list.Add(name, value);
    EXPECT_EQ(ValidateRequest(list).malformed, kToRespell) << name << ": " << value;
  }
  HeaderList length = request();
  length.Add("content-length", "7");
  EXPECT_EQ(ValidateRequest(length).malformed, nullptr);
  EXPECT_EQ(ValidateRequest(length).content_length, 7);
  HeaderList te = request();
  te.Add("te", "trailers");
  EXPECT_EQ(ValidateRequest(te).malformed, nullptr);
}

TEST_F(RunTest, WhatARunBreaksIsBrokenEachTimeAndWhatFollowsIsJudgedWithIt) {
  for (int time = 0; time < 2; ++time) {
    EXPECT_NE(ValidateResponse(WithRun({{":status", "200"}, {"te", "gzip"}})).malformed, nullptr);
    HeaderList late = WithRun({{":status", "200"}, {"server", "x"}});
    EXPECT_EQ(ValidateResponse(late).malformed, nullptr);
    EXPECT_NE(ValidateTrailers(late), nullptr) << "a pseudo-header in trailers, RFC 9113 8.1";
    EXPECT_NE(ValidateRequest(late).malformed, nullptr);
    late.Add(":status", "200");
    EXPECT_NE(ValidateResponse(late).malformed, nullptr) << "repeated, and after a regular field";
    HeaderList length = WithRun({{":status", "200"}, {"content-length", "7"}});
    EXPECT_EQ(ValidateResponse(length).content_length, 7);
    length.Add("content-length", "8");
    EXPECT_NE(ValidateResponse(length).malformed, nullptr);
    HeaderList host =
        WithRun({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}, {"host", "A"}});
    EXPECT_EQ(ValidateRequest(host).malformed, nullptr);
    HeaderList other = WithRun({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}});
    EXPECT_EQ(ValidateRequest(other).malformed, nullptr);
    EXPECT_EQ(ValidateRequest(other).malformed, nullptr);
    other.Add("host", "b");
    EXPECT_NE(ValidateRequest(other).malformed, nullptr) << "differs from the run's authority";
    HeaderList head = WithRun({{":method", "HEAD"}, {":scheme", "http"}, {":path", "/"}});
    EXPECT_TRUE(ValidateRequest(head).head);
    EXPECT_TRUE(ValidateRequest(head).head);
    HeaderList none = WithRun({{":method", "GET"}, {":scheme", "http"}});
    EXPECT_NE(ValidateRequest(none).malformed, nullptr);
    none.Add(":path", "/");
    EXPECT_EQ(ValidateRequest(none).malformed, nullptr) << "the rest of it follows the run";
    host.Add("host", "a");
    EXPECT_NE(ValidateRequest(host).malformed, nullptr) << "two of them";
  }
}

// The summary belongs to the run, so one run in messages of different kinds must be judged for each.
TEST_F(RunTest, OneRunInMessagesOfDifferentKinds) {
  const Field* status = InternTable::Static(8);
  const Field* fields[] = {status, InternTable::Static(54)};
  FieldRun* run = interns_.MakeRun(fields, 2);
  for (int time = 0; time < 2; ++time) {
    HeaderList list(&interns_);
    list.AddRun(*run);
    EXPECT_NE(ValidateTrailers(list), nullptr);
    EXPECT_EQ(ValidateResponse(list).malformed, nullptr);
    EXPECT_EQ(ValidateResponse(list).status, 200u);
    EXPECT_NE(ValidateRequest(list).malformed, nullptr);
  }
  interns_.UnrefRun(run);
}

// What is remembered goes round no limit, and what did not fit is not remembered as if it had been all.
TEST(FieldRun, LimitsHoldForWhatIsRemembered) {
  InternTable interns;
  HpackEncoder encoder(interns);
  HpackDecoder decoder(interns);
  const Pairs pairs = {{":method", "POST"}, {":scheme", "http"}, {"name", "value"}, {"other", "value"}};
  size_t bytes = 0;
  for (const auto& [name, value] : pairs) bytes += name.size() + value.size() + 32;
  for (int round = 0; round < 40; ++round) {
    HeaderList list(&interns);
    for (const auto& [name, value] : pairs) list.AddInterned(interns.Intern(name, value));
    const DecodeLimits limits[] = {{bytes, 4}, {bytes - 1, 4}, {bytes, 3}, {bytes, 0}, {0, 4}};
    const size_t fits[] = {4, 3, 3, 0, 0};
    const size_t kind = round < 5 ? 0 : static_cast<size_t>(round) % 5;
    HeaderList received(&interns);
    EXPECT_EQ(decoder.Decode(EncodeToString(encoder, list), limits[kind], received),
              kind == 0 ? DecodeResult::kOk : DecodeResult::kTooLarge);
    EXPECT_EQ(PairsOf(received), Pairs(pairs.begin(), pairs.begin() + static_cast<ptrdiff_t>(fits[kind]))) << round;
    if (kind == 0 && round >= 5) {
      EXPECT_NE(received.run(), nullptr);
    }
  }
}

// The run of a list outlives the decoder that has learned it, and what another block has put in its place.
TEST(FieldRun, ListsOutliveTheDecoder) {
  InternTable interns;
  std::vector<HeaderList> kept;
  {
    HpackDecoder decoder(interns);
    for (int round = 0; round < 60; ++round) {
      // Indexed :method POST, then a literal without indexing; three blocks of one kind, then of another.
      const std::string value(8, static_cast<char>('a' + round / 3));
      HeaderList list(&interns);
      ASSERT_EQ(decoder.Decode("\x83" + std::string("\x00\x01n\x08", 4) + value, kNoLimits, list), DecodeResult::kOk);
      ASSERT_EQ(PairsOf(list), (Pairs{{":method", "POST"}, {"n", value}}));
      if (round % 3 == 2) list.Set(Token::kTe, "te", "trailers");
      kept.push_back(std::move(list));
    }
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    const std::string value(8, static_cast<char>('a' + i / 3));
    EXPECT_EQ(kept[i].Find("n")->value(), value);
  }
}

TEST(FieldRunDeathTest, ATableThatGoesBeforeItsRunsIsFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        InternTable interns;
        const Field* field = InternTable::Static(8);  // is not counted
        interns.MakeRun(&field, 1);
      },
      "CHECK failed");
}

TEST(ValidFieldValue, FindsTheThreeForbiddenBytesAnywhere) {
  for (size_t size = 1; size < 40; ++size) {
    EXPECT_TRUE(ValidFieldValue(std::string(size, '\x7f')));
    for (size_t at = 0; at < size; ++at) {
      for (int c = 0; c < 256; ++c) {
        std::string value(size, at % 2 ? '\xff' : '\x20' + 1);
        value[at] = static_cast<char>(c);
        const bool edge = at == 0 || at + 1 == size;
        const bool legal = c != 0 && c != '\n' && c != '\r' && !(edge && (c == ' ' || c == '\t'));
        ASSERT_EQ(ValidFieldValue(value), legal) << size << " " << at << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::http2

// Body against the obvious model: a string, and how much of it was sent.
#include "proxy/body.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace sluice::proxy {
namespace {

std::string TakeAll(Body& body) {
  std::string out;
  while (!body.all_sent()) out += body.TakeUnsent().view();
  return out;
}

TEST(Body, SmallPartsAreCopiedAndLetTheirBlockGo) {
  base::Slice slice = base::Slice::Copy("abc");
  const size_t before = base::Block::LiveBytes();
  Body body;
  body.Append(slice);
  slice = base::Slice();
  EXPECT_LT(base::Block::LiveBytes(), before);
  EXPECT_EQ(TakeAll(body), "abc");
}

TEST(Body, AnEmptyPartIsNoPart) {
  Body body;
  body.Append(base::Slice());
  EXPECT_TRUE(body.all_sent());
  EXPECT_TRUE(body.TakeUnsent().empty());
  EXPECT_EQ(body.total(), 0u);
}

TEST(Body, BeyondTheLimitWhatWasSentIsLetGo) {
  Body body;
  body.SetKeepMax(1000);
  body.Append(base::Slice::Copy(std::string(600, 'a')));
  TakeAll(body);
  EXPECT_TRUE(body.CanRewind());
  const size_t before = base::Block::LiveBytes();
  body.Append(base::Slice::Copy(std::string(600, 'b')));
  EXPECT_FALSE(body.CanRewind());
  EXPECT_EQ(TakeAll(body), std::string(600, 'b'));
  EXPECT_LT(base::Block::LiveBytes(), before);
  EXPECT_EQ(body.total(), 1200u);
}

TEST(Body, WhatWasNotSentMaySurviveTheLimit) {
  Body body;
  body.SetKeepMax(0);
  body.Append(base::Slice::Copy("abc"));
  EXPECT_TRUE(body.CanRewind());  // nothing has left
  EXPECT_EQ(TakeAll(body), "abc");
  EXPECT_FALSE(body.CanRewind());
}

TEST(Body, BehavesLikeAStringWithAPosition) {
  const uint64_t seed = 20261121;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (int run = 0; run < 2000; ++run) {
    Body body;
    std::string all;
    size_t sent = 0, keep_max = SIZE_MAX;
    bool lost = false, stopped = false, limited = false;
    auto stop = [&] {
      if (!std::exchange(stopped, true)) lost |= sent > 0;
    };
    for (int step = 0; step < 60; ++step) {
      switch (random.Below(8)) {
        case 0:
        case 1:
        case 2: {
          std::string part(random.Below(4) == 0 ? random.Below(2000) : random.Below(100), '\0');
          for (char& c : part) c = static_cast<char>(random.Next());
          body.Append(base::Slice::Copy(part));
          all += part;
          if (all.size() > keep_max) stop();
          break;
        }
        case 3:
        case 4:
          if (!body.all_sent()) {
            base::Slice part = body.TakeUnsent();
            ASSERT_EQ(part.view(), std::string_view(all).substr(sent, part.size()));
            sent += part.size();
            lost |= stopped;
          }
          break;
        case 5: {
          std::string rest = TakeAll(body);
          ASSERT_EQ(rest, all.substr(sent));
          lost |= stopped && !rest.empty();
          sent = all.size();
          break;
        }
        case 6:
          if (body.CanRewind()) {
            body.Rewind();
            sent = 0;
          }
          break;
        case 7:
          if (random.Below(6) == 0) {
            body.StopKeeping();
            stop();
          } else if (!std::exchange(limited, true)) {
            keep_max = random.Below(4000);
            body.SetKeepMax(keep_max);
            if (all.size() > keep_max || keep_max == 0) stop();
          }
          break;
      }
      ASSERT_EQ(body.CanRewind(), !lost);
      ASSERT_EQ(body.all_sent(), sent == all.size());
      ASSERT_EQ(body.total(), all.size());
    }
  }
}

}  // namespace
}  // namespace sluice::proxy

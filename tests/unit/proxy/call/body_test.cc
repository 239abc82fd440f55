// Body against the obvious model: a string, and how much of it was sent.
#include "proxy/call/body.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace sluice::proxy {
namespace {

// One attempt's view of a body: the limit is looked at after each change, as a call does.
struct Sender {
  explicit Sender(Body& b) : body(b) {}
  void Append(const std::string& bytes) {
    body.Append(base::Slice::Copy(bytes));
    Look();
  }
  void SetKeepMax(size_t bytes) {
    body.SetKeepMax(bytes);
    Look();
  }
  void Look() {
    if (body.over_limit()) body.StopKeeping(at);
  }
  std::string TakeAll() {
    std::string out;
    while (!body.AllTaken(at)) out += body.Take(at).view();
    return out;
  }

  Body& body;
  Body::Cursor at;
};

TEST(Body, SmallPartsAreCopiedAndLetTheirBlockGo) {
  base::Slice slice = base::Slice::Copy("abc");
  const size_t before = base::Block::LiveBytes();
  Body body;
  body.Append(slice);
  slice = base::Slice();
  EXPECT_LT(base::Block::LiveBytes(), before);
  EXPECT_EQ(Sender(body).TakeAll(), "abc");
}

TEST(Body, AnEmptyPartIsNoPart) {
  Body body;
  body.Append(base::Slice());
  Body::Cursor at;
  EXPECT_TRUE(body.AllTaken(at));
  EXPECT_TRUE(body.Take(at).empty());
  EXPECT_EQ(body.total(), 0u);
}

TEST(Body, BeyondTheLimitWhatWasSentIsLetGo) {
  Body body;
  Sender sender(body);
  sender.SetKeepMax(1000);
  sender.Append(std::string(600, 'a'));
  sender.TakeAll();
  EXPECT_TRUE(body.CanRewind());
  const size_t before = base::Block::LiveBytes();
  sender.Append(std::string(600, 'b'));
  EXPECT_FALSE(body.CanRewind());
  EXPECT_EQ(sender.TakeAll(), std::string(600, 'b'));
  EXPECT_LT(base::Block::LiveBytes(), before);
  EXPECT_EQ(body.total(), 1200u);
}

TEST(Body, WhatWasNotSentMaySurviveTheLimit) {
  Body body;
  Sender sender(body);
  sender.SetKeepMax(0);
  sender.Append("abc");
  EXPECT_TRUE(body.CanRewind());  // nothing has left
  EXPECT_EQ(sender.TakeAll(), "abc");
  EXPECT_FALSE(body.CanRewind());
}

TEST(Body, EachCursorHasItsOwnPlaceWhileAllIsKept) {
  Body body;
  Sender first(body), second(body);
  first.Append("abc");
  EXPECT_EQ(first.TakeAll(), "abc");
  first.Append(std::string(300, 'd'));
  EXPECT_EQ(second.TakeAll(), "abc" + std::string(300, 'd'));
  EXPECT_EQ(first.TakeAll(), std::string(300, 'd'));
  second.Append("e");
  body.StopKeeping(second.at);  // the first has ended
  EXPECT_FALSE(body.CanRewind());
  EXPECT_EQ(second.TakeAll(), "e");
  EXPECT_TRUE(body.AllTaken(second.at));
}

TEST(Body, BehavesLikeAStringWithAPosition) {
  const uint64_t seed = 20261121;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (int run = 0; run < 2000; ++run) {
    Body body;
    Sender sender(body);
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
          sender.Append(part);
          all += part;
          if (all.size() > keep_max) stop();
          break;
        }
        case 3:
        case 4:
          if (!body.AllTaken(sender.at)) {
            base::Slice part = body.Take(sender.at);
            ASSERT_EQ(part.view(), std::string_view(all).substr(sent, part.size()));
            sent += part.size();
            lost |= stopped;
          }
          break;
        case 5: {
          std::string rest = sender.TakeAll();
          ASSERT_EQ(rest, all.substr(sent));
          lost |= stopped && !rest.empty();
          sent = all.size();
          break;
        }
        case 6:
          if (body.CanRewind()) {
            sender.at = {};
            sent = 0;
          }
          break;
        case 7:
          if (random.Below(6) == 0) {
            body.StopKeeping(sender.at);
            stop();
          } else if (!std::exchange(limited, true)) {
            keep_max = random.Below(4000);
            sender.SetKeepMax(keep_max);
            if (all.size() > keep_max || keep_max == 0) stop();
          }
          break;
      }
      ASSERT_EQ(body.CanRewind(), !lost);
      ASSERT_EQ(body.AllTaken(sender.at), sent == all.size());
      ASSERT_EQ(body.total(), all.size());
    }
  }
}

}  // namespace
}  // namespace sluice::proxy

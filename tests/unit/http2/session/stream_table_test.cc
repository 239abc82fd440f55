#include "http2/session/stream_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "base/random.h"
#include "http2/session/flow_control.h"
#include "http2/session/slice_queue.h"

namespace sluice::http2 {
namespace {

// Of that id; the same each time.
class Tagged {
 public:
  explicit Tagged(uint32_t id) : id_(id) {}
  uint32_t id() const { return id_; }

 private:
  const uint32_t id_;
};
Tagged* Tag(uint32_t id) {
  static std::map<uint32_t, Tagged> tags;
  return &tags.try_emplace(id, id).first->second;
}

TEST(StreamTable, AgreesWithAMap) {
  uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  StreamTable<Tagged> table;
  std::map<uint32_t, Tagged*> model;
  uint32_t next = 1;
  for (int step = 0; step < 200000; ++step) {
    // Ids in sequence with gaps, some that collide on purpose, ended in any order; grows and shrinks in waves.
    bool grow = random.Below(100) < (step / 20000 % 2 ? 30u : 60u);
    if (grow || model.empty()) {
      next += 2 * static_cast<uint32_t>(random.Below(8) == 0 ? 1 + random.Below(512) : 1);
      table.Insert(Tag(next));
      model[next] = Tag(next);
    } else {
      auto it = model.lower_bound(static_cast<uint32_t>(random.Below(next)));
      if (it == model.end()) it = model.begin();
      table.Erase(it->first);
      model.erase(it);
    }
    ASSERT_EQ(table.size(), model.size());
    uint32_t probe = static_cast<uint32_t>(random.Below(next + 4)) | 1;
    ASSERT_EQ(table.Find(probe), model.count(probe) ? Tag(probe) : nullptr);
  }
  for (auto [id, stream] : model) ASSERT_EQ(table.Find(id), stream);
}

TEST(StreamTable, FindsAmongIdsThatAllCollide) {
  // Ids whose products share their leading bits lie on one slot of any table up to 4096 slots.
  std::vector<uint32_t> ids;
  for (uint32_t id = 1; ids.size() < 100; id += 2) {
    if ((id * 0x9e3779b1u) >> 20 == 0xfff) ids.push_back(id);  // the last slot: probing wraps round
  }
  StreamTable<Tagged> table;
  for (uint32_t id : ids) table.Insert(Tag(id));
  for (size_t i = 0; i < ids.size(); i += 2) table.Erase(ids[i]);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(table.Find(ids[i]), i % 2 ? Tag(ids[i]) : nullptr);
}

TEST(SliceQueue, KeepsBytesInOrderThroughPushesAndPops) {
  uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  base::Random random(seed);
  size_t live = base::Block::LiveBytes();
  {
    SliceQueue queue;
    base::BufferChain out;
    std::string expected;
    for (int step = 0; step < 20000; ++step) {
      if (random.Below(2)) {
        std::string piece(random.Below(random.Below(3) ? 40 : 3000), static_cast<char>(random.Next()));
        expected += piece;
        queue.Push(base::Slice::Copy(piece));
      } else {
        size_t n = random.Below(std::min<size_t>(queue.bytes(), step % 4000 < 3900 ? 1100 : SIZE_MAX - 1) + 1);
        queue.MoveTo(out, n);
        ASSERT_EQ(out.ToString(), expected.substr(0, n));
        out.Consume(n);
        expected.erase(0, n);
      }
      ASSERT_EQ(queue.bytes(), expected.size());
    }
  }
  EXPECT_EQ(base::Block::LiveBytes(), live);
}

TEST(SliceQueue, TinyPiecesDoNotPinTheBlocksTheyCameIn) {
  size_t live = base::Block::LiveBytes();
  SliceQueue queue;
  for (int i = 0; i < 1000; ++i) queue.Push(base::Slice::Copy(std::string(100000, 'x')).Sub(7, 1));
  EXPECT_LT(base::Block::LiveBytes() - live, 8192u);
}

TEST(ReceiveWindow, CreditsAreGatheredUntilHalfIsOwed) {
  ReceiveWindow window;
  window.Reset(100);
  EXPECT_TRUE(window.Take(100));
  EXPECT_FALSE(window.Take(1));
  EXPECT_EQ(window.Credit(49), 0u);
  EXPECT_EQ(window.Credit(1), 50u);
  EXPECT_EQ(window.available(), 50u);
}

}  // namespace
}  // namespace sluice::http2

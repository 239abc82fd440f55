#include "runtime/cancel.h"

#include <gtest/gtest.h>

#include <memory>

namespace sluice::runtime {
namespace {

struct Counter final : CancelCallback {
  int called = 0;
  CancelSource* cancel_again = nullptr;
  std::unique_ptr<Counter>* destroys = nullptr;
  void OnCancel() override {
    ++called;
    if (cancel_again != nullptr) cancel_again->Cancel();
    if (destroys != nullptr) destroys->reset();
  }
};

TEST(Cancel, EachCallbackRunsOnceAndCancelledStays) {
  CancelSource source;
  Counter first, second;
  source.token().Register(first);
  source.token().Register(second);
  EXPECT_FALSE(source.token().cancelled());
  source.Cancel();
  source.Cancel();
  EXPECT_TRUE(source.token().cancelled());
  EXPECT_EQ(first.called, 1);
  EXPECT_EQ(second.called, 1);
}

TEST(Cancel, ADestroyedCallbackIsForgotten) {
  CancelSource source;
  {
    Counter gone;
    source.token().Register(gone);
  }
  source.Cancel();
  EXPECT_TRUE(source.cancelled());
}

TEST(Cancel, ACallbackMayCancelAgainAndDestroyAnother) {
  CancelSource source;
  Counter first;
  auto second = std::make_unique<Counter>();
  source.token().Register(first);
  source.token().Register(*second);
  first.destroys = &second;
  source.Cancel();
  EXPECT_EQ(first.called, 1);
  EXPECT_EQ(second, nullptr);

  CancelSource other;
  Counter again, last;
  again.cancel_again = &other;
  other.token().Register(again);
  other.token().Register(last);
  other.Cancel();
  EXPECT_EQ(again.called, 1);
  EXPECT_EQ(last.called, 1);
}

TEST(Cancel, ATokenWithoutASourceIsNeverCancelled) {
  CancelToken token;
  Counter counter;
  token.Register(counter);
  EXPECT_FALSE(token.cancelled());
  EXPECT_EQ(counter.called, 0);
}

}  // namespace
}  // namespace sluice::runtime

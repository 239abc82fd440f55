#include "http2/session/unread_answers.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

TEST(UnreadAnswers, AreForgottenWhenTheOutputIsEmpty) {
  UnreadAnswers answers;
  EXPECT_EQ(answers.Count(0, 0), 0u);
  for (uint64_t i = 0; i < 5; ++i) answers.Add(17 * i, 17 * i);
  EXPECT_EQ(answers.Count(85, 85), 5u);
  EXPECT_EQ(answers.Count(85, 1), 4u);  // the first generation, of one, has been written
  EXPECT_EQ(answers.Count(85, 0), 0u);
}

// Two generations: what is written is forgotten no later than when as much again has been written.
TEST(UnreadAnswers, AreForgottenAlsoWhereTheOutputNeverDrains) {
  UnreadAnswers answers;
  uint64_t appended = 170;
  for (int i = 0; i < 10; ++i) answers.Add(17 * static_cast<uint64_t>(i), 17 * static_cast<size_t>(i) + 1);
  for (int i = 0; i < 1000; ++i) {
    answers.Add(appended, 170);
    appended += 17;
    EXPECT_LE(answers.Count(appended, 170), 22u) << i;
  }
}

}  // namespace
}  // namespace sluice::http2

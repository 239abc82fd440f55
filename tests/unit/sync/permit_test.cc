#include "sync/permit.h"

#include <gtest/gtest.h>

#include "unit/sync/semaphore_support.h"

namespace sluice::sync::test {
namespace {

using Permit = TestSemaphore::Permit;

TEST(Permit, ReturnsItsUnitsAtTheEnd) {
  TestSemaphore semaphore(3);
  {
    Permit permit = *semaphore.TryAcquire(2);
    EXPECT_EQ(permit.units(), 2);
    EXPECT_EQ(semaphore.available(), 1);
    EXPECT_EQ(semaphore.held(), 2);
  }
  EXPECT_EQ(semaphore.available(), 3);
}

TEST(Permit, SplitsAndMerges) {
  TestSemaphore semaphore(5);
  Permit permit = *semaphore.TryAcquire(5);
  {
    std::optional<Permit> part = permit.Split(2);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->units(), 2);
    EXPECT_EQ(permit.units(), 3);
    EXPECT_FALSE(permit.Split(4));
    EXPECT_FALSE(permit.Split(-1));
    EXPECT_EQ(permit.units(), 3);
    EXPECT_EQ(permit.Split(0)->units(), 0);
    EXPECT_TRUE(permit.Merge(std::move(*part)));
    EXPECT_EQ(permit.units(), 5);
    EXPECT_EQ(semaphore.available(), 0);
  }
  Permit empty;
  EXPECT_TRUE(empty.Merge(std::move(permit)));
  EXPECT_EQ(empty.units(), 5);
  EXPECT_EQ(semaphore.available(), 0);
}

TEST(Permit, MergesOnlyWithinOneSemaphore) {
  TestSemaphore one(1), other(1);
  Permit a = *one.TryAcquire(1), b = *other.TryAcquire(1);
  EXPECT_FALSE(a.Merge(std::move(b)));
  EXPECT_EQ(a.units(), 1);
  EXPECT_EQ(b.units(), 1);
  EXPECT_TRUE(a.Merge(std::move(a)));  // NOLINT: with itself
  EXPECT_EQ(a.units(), 1);
}

TEST(Permit, GivesBackWhatItHasAndNoMore) {
  TestSemaphore semaphore(3);
  Permit permit = *semaphore.TryAcquire(3);
  EXPECT_TRUE(permit.GiveBack(1));
  EXPECT_FALSE(permit.GiveBack(3));
  EXPECT_FALSE(permit.GiveBack(-1));
  EXPECT_EQ(permit.units(), 2);
  EXPECT_EQ(semaphore.available(), 1);
  EXPECT_TRUE(permit.GiveBack(2));
  EXPECT_EQ(semaphore.available(), 3);
}

TEST(Permit, ForgottenUnitsAreTheCallersToSignal) {
  TestSemaphore semaphore(3);
  {
    Permit permit = *semaphore.TryAcquire(2);
    EXPECT_EQ(permit.Forget(), 2);
  }
  EXPECT_EQ(semaphore.available(), 1);
  EXPECT_EQ(semaphore.held(), 0);
  semaphore.Signal(2);
  EXPECT_EQ(semaphore.available(), 3);
}

// Trap 5: units held by the permit that is assigned to.
TEST(Permit, AssignmentReturnsWhatWasHeldBefore) {
  TestSemaphore semaphore(3), other(1);
  Permit permit = *semaphore.TryAcquire(2);
  permit = *semaphore.TryAcquire(1);
  EXPECT_EQ(semaphore.available(), 2);
  permit = *other.TryAcquire(1);
  EXPECT_EQ(semaphore.available(), 3);
  Permit& self = permit;
  permit = std::move(self);
  EXPECT_EQ(permit.units(), 1);
  permit = Permit();
  EXPECT_EQ(other.available(), 1);
}

TEST(Permit, AMovedPermitIsEmpty) {
  TestSemaphore semaphore(1);
  Permit permit = *semaphore.TryAcquire(1);
  Permit moved = std::move(permit);
  EXPECT_EQ(permit.units(), 0);  // NOLINT: what is left behind is defined
  EXPECT_FALSE(permit.Split(1));
  EXPECT_EQ(permit.Forget(), 0);
  EXPECT_EQ(moved.units(), 1);
}

TEST(Permit, OutlivesItsSemaphore) {
  Permit kept;
  {
    TestSemaphore semaphore(5);
    Permit early = *semaphore.TryAcquire(1);
    kept = *semaphore.TryAcquire(4);
  }
  std::optional<Permit> part = kept.Split(1);
  EXPECT_TRUE(kept.GiveBack(1));
  EXPECT_EQ(part->Forget(), 1);
  EXPECT_EQ(kept.units(), 2);
}

TEST(Permit, MayBeReturnedAfterABreak) {
  TestSemaphore semaphore(2);
  Permit permit = *semaphore.TryAcquire(2);
  semaphore.Break();
  EXPECT_EQ(semaphore.held(), 2);
  EXPECT_TRUE(permit.GiveBack(1));
  EXPECT_EQ(semaphore.held(), 1);
  EXPECT_EQ(semaphore.raw(), 0);
}

}  // namespace
}  // namespace sluice::sync::test

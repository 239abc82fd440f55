// Places of client connections: that there are so many, and that what is given comes back.
#include "proxy/downstream/connection_limits.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace sluice::proxy {
namespace {

TEST(ConnectionLimits, AnAddressHasItsPlacesAndNoMoreUntilOneComesBack) {
  auto limits = std::make_shared<ConnectionLimits>(100);
  auto first = limits->Enter("192.0.2.7:1", 2);
  auto second = limits->Enter("192.0.2.7:2", 2);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(limits->Enter("192.0.2.7:3", 2), nullptr);
  EXPECT_NE(limits->Enter("192.0.2.8:3", 2), nullptr);
  EXPECT_EQ(limits->open(), 2);
  first.reset();
  EXPECT_NE(limits->Enter("192.0.2.7:3", 2), nullptr);
}

TEST(ConnectionLimits, UnixSocketsAndListenersWithoutABoundAreCountedInAllOnly) {
  auto limits = std::make_shared<ConnectionLimits>(4);
  std::vector<ConnectionLimits::PlacePtr> places;
  for (int i = 0; i < 2; ++i) places.push_back(limits->Enter("unix:", 1));
  for (int i = 0; i < 2; ++i) places.push_back(limits->Enter("192.0.2.7:1", 0));
  for (const auto& place : places) EXPECT_NE(place, nullptr);
  EXPECT_TRUE(limits->Full());
  limits->SetMax(5);
  EXPECT_FALSE(limits->Full());
  limits->SetMax(4);
  places.pop_back();
  EXPECT_FALSE(limits->Full());
}

TEST(ConnectionLimits, APlaceMayOutliveItsOwner) {
  auto limits = std::make_shared<ConnectionLimits>(4);
  auto place = limits->Enter("192.0.2.7:1", 1);
  limits.reset();
  place.reset();
}

TEST(ConnectionLimits, ThreadsThatComeAndGoLeaveNothingBehind) {
  auto limits = std::make_shared<ConnectionLimits>(1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&limits, t] {
      for (int i = 0; i < 20'000; ++i) {
        auto place = limits->Enter("192.0.2." + std::to_string((i + t) % 7) + ":1", 2);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(limits->open(), 0);
  std::vector<ConnectionLimits::PlacePtr> places;
  for (int i = 0; i < 14; ++i) {
    places.push_back(limits->Enter("192.0.2." + std::to_string(i % 7) + ":1", 2));
    EXPECT_NE(places.back(), nullptr) << i;
  }
}

}  // namespace
}  // namespace sluice::proxy

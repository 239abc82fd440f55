// FaultSet: faults are in force when they are added, end by themselves, and are bounded in number.
#include "server/fault_set.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace sluice::server {
namespace {

using base::ErrorKind;
using proxy::FaultOptions;
using std::chrono::milliseconds;
using std::chrono::seconds;

class FaultSetTest : public ::testing::Test {
 public:
  static admin::FaultOrder Order(const std::string& target, milliseconds time = seconds(60)) {
    admin::FaultOrder order;
    order.target = target;
    order.delay = milliseconds(5);
    order.time = time;
    return order;
  }
  static base::Result<std::string> Route(std::string name) { return name; }
  const base::Result<std::string> kNone = base::MakeError(ErrorKind::kNotFound, "no route is named so; there is a, b");
  size_t InForce() const { return table == nullptr ? 0 : table->size(); }

  base::ManualClock clock;
  std::shared_ptr<const proxy::FaultTable> table;
  int published = 0;
  FaultSet set{clock, [this](auto faults) {
                 table = std::move(faults);
                 ++published;
               }};
};

TEST_F(FaultSetTest, IsInForceFromAddToRemove) {
  auto first = set.Add(Order("users"), Route("users"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->options.route, "users");
  EXPECT_EQ(first->left, seconds(60));
  auto second = set.Add(Order("p.S/M"), kNone);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->options.method, "/p.S/M");
  EXPECT_EQ(InForce(), 2u);
  EXPECT_TRUE(table->at(1)->Covers("x", "/p.S/M", clock.Now()));
  EXPECT_FALSE(table->at(1)->Covers("users", "/p.S/N", clock.Now()));
  EXPECT_NE(first->id, second->id);
  ASSERT_TRUE(set.Remove(first->id).ok());
  EXPECT_EQ(InForce(), 1u);
  EXPECT_EQ(set.Remove(first->id).error().kind, ErrorKind::kNotFound);
  ASSERT_TRUE(set.Remove(second->id).ok());
  EXPECT_EQ(table, nullptr) << "calls pay nothing more";
}

TEST_F(FaultSetTest, EndsByItself) {
  ASSERT_TRUE(set.Add(Order("users", seconds(10)), Route("users")).ok());
  ASSERT_TRUE(set.Add(Order("users", seconds(20)), Route("users")).ok());
  clock.Advance(seconds(9));
  EXPECT_EQ(set.List().size(), 2u);
  EXPECT_EQ(set.List()[0].left, seconds(1));
  const int before = published;
  set.Poll();
  EXPECT_EQ(published, before);
  clock.Advance(seconds(1));
  EXPECT_EQ(set.List().size(), 1u);
  EXPECT_FALSE(table->at(0)->Covers("users", "/a/B", clock.Now())) << "also before the next look";
  set.Poll();
  EXPECT_EQ(InForce(), 1u);
  clock.Advance(seconds(10));
  set.Poll();
  EXPECT_EQ(table, nullptr);
}

TEST_F(FaultSetTest, ANameThatIsNeitherRouteNorMethodIsNotFound) {
  for (const char* target : {"users", "/", "/a", "a/", "/a/b/c", "//b"})
    EXPECT_EQ(set.Add(Order(target), kNone).error().kind, ErrorKind::kNotFound) << target;
  EXPECT_EQ(set.Add(Order("x"), kNone).error().detail,
            "no route is named so; there is a, b; or name a method, like pkg.Service/Get");
  EXPECT_EQ(set.Add(Order("cluster"), Route("routes[3]"))->options.route, "routes[3]") << "the route that it means";
  EXPECT_EQ(set.Add(Order("/p.S/M"), kNone)->options.method, "/p.S/M");
  EXPECT_EQ(set.Add(Order("r/1"), Route("r/1"))->options.route, "r/1");
}

TEST_F(FaultSetTest, ThereAreNoMoreThanSoMany) {
  for (size_t i = 0; i < FaultOptions::kFaultsMax; ++i)
    ASSERT_TRUE(set.Add(Order("users", seconds(10)), Route("users")).ok());
  EXPECT_EQ(set.Add(Order("users"), Route("users")).error().kind, ErrorKind::kInvalidArgument);
  EXPECT_EQ(InForce(), FaultOptions::kFaultsMax);
  clock.Advance(seconds(10));
  EXPECT_TRUE(set.Add(Order("users"), Route("users")).ok()) << "those that have ended make room";
  EXPECT_EQ(InForce(), 1u);
}

}  // namespace
}  // namespace sluice::server

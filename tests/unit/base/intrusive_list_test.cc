// IntrusiveList: order, removal from anywhere, splicing, and the ends of lists and elements.
#include "base/intrusive_list.h"

#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <vector>

#include "base/random.h"

namespace sluice::base {
namespace {

struct First;
struct Second;
struct Element : ListNode<First>, ListNode<Second> {
  explicit Element(int value) : value(value) {}
  int value;
};
using FirstList = IntrusiveList<Element, First>;
using SecondList = IntrusiveList<Element, Second>;

std::vector<int> Values(FirstList& list) {
  std::vector<int> values;
  for (Element* e = list.front(); e != nullptr; e = list.Next(*e)) values.push_back(e->value);
  return values;
}

TEST(IntrusiveList, KeepsOrderFromBothEnds) {
  Element a(1), b(2), c(3);
  FirstList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.back(), nullptr);
  EXPECT_EQ(list.PopFront(), nullptr);
  for (Element* e : {&a, &b, &c}) list.PushBack(*e);
  EXPECT_EQ(Values(list), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(list.back(), &c);
  EXPECT_EQ(list.PopFront(), &a);
  EXPECT_FALSE(a.ListNode<First>::linked());
  EXPECT_EQ(list.front(), &b);
}

TEST(IntrusiveList, ElementsLeaveFromAnywhereAndMayComeBack) {
  Element a(1), b(2), c(3);
  FirstList list;
  for (Element* e : {&a, &b, &c}) list.PushBack(*e);
  b.ListNode<First>::Unlink();
  b.ListNode<First>::Unlink();  // a second time does nothing
  EXPECT_EQ(Values(list), (std::vector<int>{1, 3}));
  list.PushBack(b);
  EXPECT_EQ(Values(list), (std::vector<int>{1, 3, 2}));
}

TEST(IntrusiveList, DestroyedElementsUnlinkThemselves) {
  FirstList list;
  Element a(1), c(3);
  list.PushBack(a);
  {
    Element b(2);
    list.PushBack(b);
    list.PushBack(c);
  }
  EXPECT_EQ(Values(list), (std::vector<int>{1, 3}));
}

TEST(IntrusiveList, DestroyedListLetsItsElementsGo) {
  Element a(1);
  {
    FirstList list;
    list.PushBack(a);
    EXPECT_TRUE(a.ListNode<First>::linked());
  }
  EXPECT_FALSE(a.ListNode<First>::linked());
}

TEST(IntrusiveList, AnElementIsInOneListPerTag) {
  Element a(1), b(2);
  FirstList first;
  SecondList second;
  first.PushBack(a);
  first.PushBack(b);
  second.PushBack(b);
  second.PushBack(a);
  EXPECT_EQ(first.front(), &a);
  EXPECT_EQ(second.front(), &b);
  first.PopFront();
  EXPECT_TRUE(a.ListNode<Second>::linked());
}

TEST(IntrusiveList, SpliceMovesAllInOrder) {
  Element a(1), b(2), c(3), d(4);
  FirstList left, right;
  left.Splice(right);
  EXPECT_TRUE(left.empty());
  right.PushBack(c);
  right.PushBack(d);
  left.PushBack(a);
  left.PushBack(b);
  left.Splice(right);
  EXPECT_EQ(Values(left), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_TRUE(right.empty());
  right.Splice(left);  // into an empty one
  EXPECT_EQ(Values(right), (std::vector<int>{1, 2, 3, 4}));
  d.ListNode<First>::Unlink();
  EXPECT_EQ(right.back(), &c);
}

TEST(IntrusiveList, BehavesAsAListOverRandomOperations) {
  Random random(1);
  std::vector<std::unique_ptr<Element>> elements;
  for (int i = 0; i < 20; ++i) elements.push_back(std::make_unique<Element>(i));
  FirstList list, other;
  std::list<int> model, other_model;
  for (int step = 0; step < 20000; ++step) {
    Element& e = *elements[random.Below(20)];
    ListNode<First>& node = e;
    switch (random.Below(5)) {
      case 0:
        if (!node.linked()) list.PushBack(e), model.push_back(e.value);
        break;
      case 1:
        if (!node.linked()) other.PushBack(e), other_model.push_back(e.value);
        break;
      case 2:
        node.Unlink();
        model.remove(e.value);
        other_model.remove(e.value);
        break;
      case 3:
        ASSERT_EQ(list.PopFront() == nullptr, model.empty());
        if (!model.empty()) model.pop_front();
        break;
      case 4:
        if (random.Below(5) != 0) break;
        list.Splice(other);
        model.splice(model.end(), other_model);
        break;
    }
    ASSERT_EQ(Values(list), std::vector<int>(model.begin(), model.end()));
    ASSERT_EQ(Values(other), std::vector<int>(other_model.begin(), other_model.end()));
  }
}

}  // namespace
}  // namespace sluice::base

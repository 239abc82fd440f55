// EtcdList: keys to endpoints, changes on top of them, and every key that makes a list none.
#include "discovery/etcd/etcd_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"

namespace sluice::discovery {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const base::Result<List>& list) {
  if (!list.ok()) return "error: " + list.error().detail;
  std::string text;
  for (const auto& endpoint : *list) text += (text.empty() ? "" : " ") + endpoint.name + "=" + EtcdValueOf(endpoint);
  return text;
}

class EtcdListTest : public ::testing::Test {
 protected:
  EtcdList list{"/users/", &config::ParseEndpointValue};
};

TEST_F(EtcdListTest, ChangesAreAppliedInTheirOrder) {
  EXPECT_EQ(TextOf(list.Make()), "");
  list.Apply({{"/users/b", "10.0.0.2:1"}, {"/users/a", "10.0.0.1:1"}, {"/users/b", "10.0.0.2:2@0.5"}});
  EXPECT_EQ(TextOf(list.Make()), "a=10.0.0.1:1 b=10.0.0.2:2@0.5");
  list.Apply({{"/users/a", std::nullopt}, {"/users/nothing", std::nullopt}, {"/users/c/d", "host:3"}});
  EXPECT_EQ(TextOf(list.Make()), "b=10.0.0.2:2@0.5 c/d=host:3");
  list.Begin();
  EXPECT_EQ(TextOf(list.Make()), "");
}

TEST_F(EtcdListTest, EndpointsAreNamedByTheirKeysOrByThemselves) {
  list.Apply(
      {{"/users/k1", R"({"address": "10.0.0.1:1", "name": "z"})"}, {"/users/k2", R"({"address": "10.0.0.2:1"})"}});
  EXPECT_EQ(TextOf(list.Make()), "k2=10.0.0.2:1 z=10.0.0.1:1");
}

TEST_F(EtcdListTest, OneBadEntryRefusesTheListAndIsNamed) {
  list.Apply({{"/users/a", "10.0.0.1:1"}});
  const std::pair<std::string, const char*> cases[] = {
      {"10.0.0.2", "/users/b: "},
      {"", "/users/b: is empty; allowed: host:port, host:port@weight"},
      {"10.0.0.2:1@0", "/users/b: weight \"0\" is not allowed; allowed: "},
      {"10.0.0.2:0", "/users/b: \"10.0.0.2:0\": port 0 cannot be connected to"},
      {R"({"address": "10.0.0.2:1", "wieght": 2})", "/users/b: wieght: unknown key; did you mean \"weight\"?"},
      {R"({"address": )", "/users/b: "},
      {R"({"weight": 2})", "/users/b: address: is missing"},
      {R"({"address": "10.0.0.2:1", "name": "a"})", "/users/b: name a is also that of /users/a"},
      {std::string(EtcdList::kValueBytesMax + 1, 'x'),
       "/users/b: has a value of 4097 bytes; at most 4096 are allowed"}};
  for (const auto& [value, wanted] : cases) {
    list.Apply({{"/users/b", value}});
    const auto made = list.Make();
    ASSERT_FALSE(made.ok()) << value;
    EXPECT_THAT(made.error().detail, HasSubstr(wanted));
  }
  list.Apply({{"/users/b", std::nullopt}});
  EXPECT_TRUE(list.Make().ok());
}

TEST_F(EtcdListTest, KeysThatAreNoNamesAreErrors) {
  const std::pair<std::string, const char*> cases[] = {
      {"/users/", "/users/: is the prefix itself; a name must follow it"},
      {"/other/a", "/other/a: is not below /users/"},
      {"/users/a b", "is not a name"},
      {"/users/\x01", "/users/?: "}};
  for (const auto& [key, wanted] : cases) {
    list.Begin();
    list.Apply({{key, "10.0.0.1:1"}});
    const auto made = list.Make();
    ASSERT_FALSE(made.ok()) << key;
    EXPECT_THAT(made.error().detail, HasSubstr(wanted));
  }
}

TEST_F(EtcdListTest, ManyErrorsAreToldInPart) {
  for (int i = 0; i < 9; ++i) list.Apply({{"/users/" + std::to_string(i), "x"}});
  EXPECT_THAT(list.Make().error().detail, HasSubstr("; and 4 more"));
}

TEST_F(EtcdListTest, TheValueOfAnEndpointIsReadBack) {
  const auto address = net::Address::Parse("[::1]:80");
  for (const upstream::EndpointOptions& endpoint :
       {upstream::EndpointOptions{"n", *address, 1, 0, ""}, upstream::EndpointOptions{"n", *address, 0.1, 0, ""},
        upstream::EndpointOptions{"n", *address, 2.5, 3, "eu \"\\ 2"},
        upstream::EndpointOptions{"n", *address, 1, 0, "a"}}) {
    const auto read = config::ParseEndpointValue("n", EtcdValueOf(endpoint));
    ASSERT_TRUE(read.ok()) << read.error().detail;
    EXPECT_EQ(*read, endpoint) << EtcdValueOf(endpoint);
  }
}

TEST(EtcdMessagesTest, TheEndOfAPrefixIsTheFirstKeyBehindIt) {
  EXPECT_EQ(EtcdRangeEnd("/a/"), "/a0");
  EXPECT_EQ(EtcdRangeEnd("a\xff\xff"), "b");
  EXPECT_EQ(EtcdRangeEnd("\xff"), std::string(1, '\0'));
}

TEST(EtcdMessagesTest, ForeignTextIsShownPrintableAndBounded) {
  EXPECT_EQ(EtcdShown("a\nb\x7f"), "a?b?");
  EXPECT_EQ(EtcdShown(std::string(300, 'a')).size(), 203u);
}

}  // namespace
}  // namespace sluice::discovery

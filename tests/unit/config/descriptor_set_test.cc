// DescriptorSet: methods and field numbers as protoc wrote them; a bad file is one clear error.
#include "config/descriptor_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/config/test_descriptors.h"

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string BuildError(std::string_view text) {
  DescriptorSet set;
  const base::Status built = set.Build(Serialized(text));
  return built.ok() ? "" : built.error().detail;
}

class Loaded : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(set_.Build(Serialized(kTestDescriptors)).ok()); }

  std::string Resolve(std::string_view field, std::string_view message = "p.GetRequest") {
    const auto numbers = set_.Resolve(message, field);
    if (!numbers.ok()) return numbers.error().detail;
    std::string out;
    for (uint32_t number : *numbers) out += (out.empty() ? "" : ".") + std::to_string(number);
    return out;
  }

  DescriptorSet set_;
};

TEST_F(Loaded, ListsServicesAndMethods) {
  EXPECT_THAT(set_.services(), ElementsAre("p.Orders", "p.Users"));
  EXPECT_THAT(set_.Methods("p.Nothing"), IsEmpty());
  const auto methods = set_.Methods("p.Users");
  ASSERT_EQ(methods.size(), 4u);
  EXPECT_EQ(methods[2].name, "Get");
  EXPECT_EQ(methods[2].path, "/p.Users/Get");
  EXPECT_EQ(methods[2].input, "p.GetRequest");
  EXPECT_TRUE(methods[2].unary() && methods[2].no_side_effects);
  EXPECT_TRUE(methods[0].server_streaming && !methods[0].unary());
  EXPECT_TRUE(methods[3].client_streaming && !methods[3].unary() && !methods[3].no_side_effects);
  EXPECT_FALSE(set_.Methods("p.Orders")[1].no_side_effects);  // IDEMPOTENT is less
}

TEST_F(Loaded, ResolvesNamesToNumbers) {
  EXPECT_EQ(Resolve("user.id"), "3.1");
  EXPECT_EQ(Resolve("user.friend.friend.name"), "3.3.3.2");
  EXPECT_EQ(Resolve("token"), "7");  // of a oneof
  std::string deep = "user";
  for (int i = 0; i < 14; ++i) deep += ".friend";
  EXPECT_EQ(Resolve(deep + ".id").substr(0, 6), "3.3.3.");
  EXPECT_EQ(Resolve(deep + ".friend.id"), "is deeper than 16 fields");
}

TEST_F(Loaded, SaysWhatIsThereInstead) {
  EXPECT_EQ(Resolve("usr"), "p.GetRequest has no field \"usr\"; did you mean \"user\"?");
  EXPECT_EQ(Resolve("user.x"), "p.User has no field \"x\"; there are: id, name, friend");
  EXPECT_EQ(Resolve("x", "p.Empty"), "p.Empty has no field \"x\"; it has none");
  EXPECT_EQ(Resolve("user"), "\"user\" is a message, p.User; name one of its fields; there are: id, name, friend");
  EXPECT_EQ(Resolve("user.id.x"), "\"user.id\" is no message and has no fields");
  EXPECT_EQ(Resolve("tags"), "\"tags\" is repeated; a key is one value");
  EXPECT_EQ(Resolve("friends.id"), "\"friends\" is repeated; a key is one value");
  EXPECT_EQ(Resolve("labels"), "\"labels\" is a map; a key is one value");
  EXPECT_EQ(Resolve("choice"),
            "p.GetRequest has no field \"choice\"; there are: user, tags, friends, labels, token, other");
  for (const char* odd : {"", ".", "user.", ".user", "user..id"})
    EXPECT_THAT(Resolve(odd), HasSubstr("has no field \"\"")) << odd;
  EXPECT_THAT(Resolve("id", "p.Nothing"), HasSubstr("there is no message"));
}

TEST(DescriptorSet, FilesMayComeInAnyOrderAndTwice) {
  EXPECT_EQ(BuildError(R"pb(file { name: "a" dependency: "b" }
                            file { name: "b" }
                            file { name: "b" })pb"),
            "");
  EXPECT_EQ(BuildError(R"pb(file { name: "a" }
                            file { name: "a" package: "x" })pb"),
            "has two different files \"a\"");
}

TEST(DescriptorSet, AnIncompleteSetIsOneError) {
  EXPECT_EQ(BuildError(R"pb(file { name: "a" dependency: "b" })pb"),
            "lacks \"b\", which \"a\" imports; it must be made by protoc --include_imports --descriptor_set_out");
  EXPECT_EQ(BuildError(R"pb(file { name: "a" dependency: "a" })pb"), "\"a\" imports itself");
  EXPECT_THAT(BuildError(R"pb(file { name: "a" dependency: "b" }
                              file { name: "b" dependency: "a" })pb"),
              HasSubstr("imports itself"));
  EXPECT_THAT(BuildError(R"pb(file {
                                name: "a"
                                message_type {
                                  name: "M"
                                  field { name: "f" number: 1 type: TYPE_MESSAGE type_name: ".N" label: LABEL_OPTIONAL }
                                }
                              })pb"),
              HasSubstr("is not valid: a: "));
  EXPECT_THAT(BuildError(""), HasSubstr("is no descriptor set"));
  DescriptorSet set;
  EXPECT_FALSE(set.Build("listeners: []").ok());
}

TEST(DescriptorSet, ALongChainOfImportsIsNoRecursion) {
  google::protobuf::FileDescriptorSet set;
  for (int i = 0; i < 20000; ++i) {
    auto* file = set.add_file();
    file->set_name(std::to_string(i));
    if (i + 1 < 20000) file->add_dependency(std::to_string(i + 1));
  }
  DescriptorSet read;
  EXPECT_TRUE(read.Build(set.SerializeAsString()).ok());
}

TEST(DescriptorSet, AFileThatCannotBeReadIsOneError) {
  const auto error = [](const std::string& path) {
    DescriptorSet set;
    const base::Status loaded = set.Load(path);
    return loaded.ok() ? "" : loaded.error().detail;
  };
  EXPECT_EQ(error("/nonexistent/set"), "cannot be read: No such file or directory");
  EXPECT_EQ(error("/dev/zero"), "cannot be read: not a regular file");
  EXPECT_EQ(error("/"), "cannot be read: not a regular file");
  const TestFile good("good.pb", Serialized(kTestDescriptors));
  EXPECT_EQ(error(good.path()), "");
  const TestFile big("big.pb", std::string(kDescriptorSetBytesMax + 1, '\n'));
  EXPECT_EQ(error(big.path()), "has more than 64MiB");
}

}  // namespace
}  // namespace sluice::config

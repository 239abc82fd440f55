// hash_by with a field: names become numbers for every method that the route can get, or an error says which cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "unit/config/test_descriptors.h"

namespace sluice::config {
namespace {

using proxy::HashBy;
using proxy::MethodField;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HashField : public ::testing::Test {
 protected:
  std::string Yaml(std::string_view routes, bool descriptors = true) {
    return "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, endpoints: [a:1]}]\nroutes:\n" +
           std::string(routes) + "\n" + (descriptors ? "descriptor_set: " + file_.name() + "\n" : "");
  }
  // The configuration lies beside the descriptor set.
  ParseResult ParseIt(const std::string& yaml) { return Parse(yaml, ::testing::TempDir() + "f"); }
  std::vector<std::string> ErrorsOf(const std::string& yaml) {
    std::vector<std::string> out;
    for (const ConfigError& error : ParseIt(yaml).errors) out.push_back(error.ToString());
    return out;
  }
  HashBy Of(const std::string& yaml, size_t route = 0) {
    const ParseResult result = ParseIt(yaml);
    for (const ConfigError& error : result.errors) ADD_FAILURE() << error.ToString();
    return result.ok() ? result.config.routes.at(route).hash_by : HashBy();
  }

  const TestFile file_{"hash.pb", Serialized(kTestDescriptors)};
};

TEST_F(HashField, ANameIsResolvedForEveryMethodOfTheService) {
  const HashBy by = Of(Yaml("  - {cluster: users, service: p.Users, hash_by: {field: user.id}}"));
  EXPECT_EQ(by.kind, HashBy::Kind::kField);
  EXPECT_THAT(by.fields, ElementsAre(MethodField{"/p.Users/Get", {3, 1}}, MethodField{"/p.Users/List", {1, 1}},
                                     MethodField{"/p.Users/Upload", {3, 1}}, MethodField{"/p.Users/Watch", {3, 1}}));
  EXPECT_EQ(by.field_bytes_max, 65536u);
}

TEST_F(HashField, ARouteWithAMethodNeedsItInThatOneAlone) {
  EXPECT_THAT(
      Of(Yaml("  - {cluster: users, service: p.Orders, method: Get, hash_by: {field: token, bytes_max: 1MiB}}")).fields,
      ElementsAre(MethodField{"/p.Orders/Get", {7}}));
}

TEST_F(HashField, MethodsThatARouteBeforeTakesDoNotCount) {
  const std::string rest = "  - {cluster: users, service: p.Orders, hash_by: {field: user.id}}";
  EXPECT_THAT(Of(Yaml("  - {cluster: users, service: p.Orders, method: Ping}\n" + rest), 1).fields,
              ElementsAre(MethodField{"/p.Orders/Get", {3, 1}}));
  EXPECT_THAT(Of(Yaml("  - {cluster: users, prefix: /p.Orders/Pi}\n" + rest), 1).fields,
              ElementsAre(MethodField{"/p.Orders/Get", {3, 1}}));
  // This one takes some calls of Ping only.
  EXPECT_THAT(ErrorsOf(Yaml("  - {cluster: users, service: p.Orders, method: Ping, authority: a}\n" + rest)),
              ElementsAre(HasSubstr(
                  "routes[1].hash_by.field: \"user.id\" is not in the requests of Ping (p.Empty has no field")));
}

TEST_F(HashField, NumbersNeedNoDescriptorSet) {
  const HashBy by = Of(Yaml("  - {cluster: users, hash_by: {field: 3.1, bytes_max: 1}}", false));
  EXPECT_EQ(by.kind, HashBy::Kind::kField);
  EXPECT_THAT(by.fields, ElementsAre(MethodField{"", {3, 1}}));
  EXPECT_EQ(by.field_bytes_max, 1u);
  EXPECT_THAT(Of(Yaml("  - {cluster: users, hash_by: {field: 536870911}}")).fields,
              ElementsAre(MethodField{"", {536870911}}));
}

TEST_F(HashField, EachNonsensicalFieldIsOneErrorWithItsPlace) {
  const struct {
    std::string_view route;
    std::string error;
  } cases[] = {
      {"hash_by: {field: user.id}", ":4:39: routes[0].hash_by.field: a name is only allowed in a route with service"},
      {"prefix: /p.Users/, hash_by: {field: user.id}", "a name is only allowed in a route with service"},
      {"service: p.User, hash_by: {field: user.id}",
       "descriptor_set has no service \"p.User\"; did you mean \"p.Users\"?"},
      {"service: p.Users, method: Gett, hash_by: {field: user.id}",
       "no method of p.Users \"Gett\"; did you mean \"Get\"?"},
      {"service: p.Users, hash_by: {field: usr.id}",
       "\"usr.id\": p.GetRequest has no field \"usr\"; did you mean \"user\"?"},
      {"service: p.Users, hash_by: {field: tags}", "\"tags\": \"tags\" is repeated; a key is one value"},
      {"service: p.Users, hash_by: {field: token}",
       "is not in the requests of List (p.ListRequest has no field \"token\""},
      {"service: p.Users, hash_by: {field: user}", "\"user\" is a message, p.User; name one of its fields"},
      {"service: p.Users, hash_by: {field: ''}", "has no field \"\""},
      {"hash_by: {field: 0}", "\"0\" is not 1 to 16 field numbers in [1, 536870911]"},
      {"hash_by: {field: 3.}", "is not 1 to 16 field numbers"},
      {"hash_by: {field: .}", "is not 1 to 16 field numbers"},
      {"hash_by: {field: 536870912}", "is not 1 to 16 field numbers"},
      {"hash_by: {field: 1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1}", "is not 1 to 16 field numbers"},
      {"hash_by: {field: [a]}", "routes[0].hash_by.field: a list; allowed: a text"},
      {"hash_by: {field: 3.1, metadata: a}", "routes[0].hash_by: has more than one of metadata, field; one is allowed"},
      {"hash_by: {metadata: a, bytes_max: 5}", "bytes_max: is only allowed together with field"},
      {"hash_by: {field: 3.1, bytes_max: 0}", "bytes_max: \"0\" is not a size in [1, 1MiB]"},
      {"hash_by: {feild: 3.1, metadata: a}", "did you mean \"field\"?"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ErrorsOf(Yaml("  - {cluster: users, " + std::string(c.route) + "}")), ElementsAre(HasSubstr(c.error)))
        << c.route;
  }
  EXPECT_THAT(ErrorsOf(Yaml("  - {cluster: users, service: p.Users, hash_by: {field: user.id}}", false)),
              ElementsAre(HasSubstr(
                  "\"user.id\" is a name, which needs descriptor_set; allowed without: field numbers, like 3.1")));
}

TEST_F(HashField, ADescriptorSetThatFailsIsTheOnlyError) {
  const std::string yaml =
      "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users, endpoints: [a:1]}]\n"
      "routes: [{cluster: users, service: p.S, hash_by: {field: a}, cache: {ttl: 1s, methods: "
      "no_side_effects}}]\ndescriptor_set: ";
  EXPECT_THAT(
      ErrorsOf(yaml + "/nonexistent/a.pb\n"),
      ElementsAre(HasSubstr(":4:17: descriptor_set: \"/nonexistent/a.pb\" cannot be read: No such file or directory")));
  const TestFile bad("bad.pb", "listeners: []");
  EXPECT_THAT(ErrorsOf(yaml + bad.name() + "\n"),
              ElementsAre(HasSubstr("is no descriptor set; it must be made by protoc")));
}

TEST_F(HashField, TheDescriptorSetIsLookedForBesideTheFile) {
  const std::string yaml = Yaml("  - {cluster: users}");
  const ParseResult result = ParseIt(yaml);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.config.descriptor_set, file_.path());
  EXPECT_EQ(Parse(yaml, "/nonexistent/f").errors.size(), 1u);
}

}  // namespace
}  // namespace sluice::config

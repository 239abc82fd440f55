// gRPC-Web of a listener: what may stand there, and what is written back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/dump.h"
#include "unit/config/one_route.h"

namespace sluice::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Listener(const std::string& web) {
  return "listeners: [{address: 127.0.0.1:1, grpc_web: " + web + "}]\nclusters: [{name: users, endpoints: [a:1]}]\n";
}
std::vector<std::string> CorsErrors(const std::string& cors) { return ErrorsOf(Listener("{cors: {" + cors + "}}")); }

const proxy::GrpcWebOptions& Of(const ParseResult& result) { return result.config.listeners[0].grpc_web; }

TEST(GrpcWebConfig, TheSectionTurnsItOn) {
  EXPECT_FALSE(Of(Parse(OneRoute(""), "f")).enabled);
  for (const char* web : {"{}", ""}) {
    const ParseResult result = Parse(Listener(web), "f");
    ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
    EXPECT_TRUE(Of(result).enabled);
    EXPECT_FALSE(Of(result).cors.enabled());
  }
}

TEST(GrpcWebConfig, CorsIsRead) {
  const ParseResult result = Parse(
      Listener("{cors: {origins: [\"https://a.example.com\", \"https://*.example.com:8443\", \"http://[::1]:80801\", "
               "capacitor://localhost], headers: [authorization, x-tenant], expose: [x-cost], max_age: 1h, "
               "credentials: true}}"),
      "f");
  ASSERT_THAT(result.errors.size(), 1u);  // 80801 is no port
  const ParseResult good =
      Parse(Listener("{cors: {origins: [\"https://a.example.com\", \"https://*.example.com:8443\", "
                     "\"http://[::1]:8080\", capacitor://localhost], headers: [authorization, x-tenant], "
                     "expose: [x-cost], max_age: 1h, credentials: true}}"),
            "f");
  ASSERT_TRUE(good.ok()) << good.errors[0].ToString();
  const proxy::CorsOptions& cors = Of(good).cors;
  EXPECT_THAT(cors.origins, ElementsAre("https://a.example.com", "https://*.example.com:8443", "http://[::1]:8080",
                                        "capacitor://localhost"));
  EXPECT_THAT(cors.headers, ElementsAre("authorization", "x-tenant"));
  EXPECT_THAT(cors.expose, ElementsAre("x-cost"));
  EXPECT_EQ(cors.max_age, std::chrono::hours(1));
  EXPECT_TRUE(cors.credentials);
}

TEST(GrpcWebConfig, AnOriginIsWhatABrowserSays) {
  for (const char* wrong :
       {"https://a.example.com/", "https://A.example.com", "a.example.com", "https://", "null", "https://a:443",
        "http://a:80", "https://a:0", "https://a:70000", "https://*", "https://a.*.com", "https://.a", "https://a b",
        "https://u@a", "https://a..b", "https://*.", "://a", "https://[::1", "https://a:"}) {
    EXPECT_THAT(CorsErrors("origins: [\"" + std::string(wrong) + "\"]"),
                ElementsAre(HasSubstr("grpc_web.cors.origins[0]: \"" + std::string(wrong) + "\" is not an origin")))
        << wrong;
  }
}

TEST(GrpcWebConfig, MistakesHaveAPlaceAndSayWhatIsAllowed) {
  EXPECT_THAT(CorsErrors("headers: [x-a]"), ElementsAre(HasSubstr("grpc_web.cors.origins: is missing")));
  EXPECT_THAT(CorsErrors("origins: []"), ElementsAre(HasSubstr("grpc_web.cors.origins: is empty")));
  EXPECT_THAT(CorsErrors("origins: [\"https://a\", \"https://a\"]"),
              ElementsAre(HasSubstr("origins[1]: \"https://a\" is there twice")));
  EXPECT_THAT(CorsErrors("origins: [\"https://a\"], headers: [X-A]"),
              ElementsAre(HasSubstr("headers[0]: \"X-A\" is not a header's name")));
  EXPECT_THAT(CorsErrors("origins: [\"https://a\"], headers: [x-a, x-a]"),
              ElementsAre(HasSubstr("headers[1]: \"x-a\" is there twice")));
  EXPECT_THAT(CorsErrors("origins: [\"https://a\"], expose: [\"*\"], credentials: true"),
              ElementsAre(HasSubstr("grpc_web.cors.expose: \"*\" is all headers only without credentials")));
  EXPECT_THAT(CorsErrors("origins: [\"https://a\"], max_age: 25h"), ElementsAre(HasSubstr("max_age")));
  EXPECT_THAT(ErrorsOf(Listener("true")), ElementsAre(HasSubstr("grpc_web")));
  EXPECT_THAT(ErrorsOf(Listener("{cors: {origins: [\"*\"]}, core: 1}")), ElementsAre(HasSubstr("core")));
}

TEST(GrpcWebConfig, EveryOriginGoesWithoutCredentials) {
  EXPECT_THAT(CorsErrors("origins: [\"*\"], headers: [\"*\"]"), IsEmpty());
  EXPECT_THAT(CorsErrors("origins: [\"https://a\", \"*\"], credentials: true"),
              ElementsAre(HasSubstr("grpc_web.cors.credentials: with origins")));
  const ParseResult result = Parse(Listener("{cors: {origins: [\"*\", \"https://a\"]}}"), "f");
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_THAT(result.warnings[0].ToString(), HasSubstr("the others say nothing"));
}

TEST(GrpcWebConfig, ItIsWrittenAsItIsRead) {
  for (const char* web :
       {"{}", "{cors: {origins: [\"https://*.a\"], headers: [\"*\"], expose: [x-b, \"*\"], max_age: 0}}"}) {
    const ParseResult first = Parse(Listener(web), "f");
    ASSERT_TRUE(first.ok()) << first.errors[0].ToString();
    const ParseResult again = Parse(Dump(first.config), "f");
    ASSERT_TRUE(again.ok()) << again.errors[0].ToString();
    EXPECT_EQ(Of(again), Of(first));
  }
}

}  // namespace
}  // namespace sluice::config

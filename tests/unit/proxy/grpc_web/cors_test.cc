// The CORS protocol: which origins, what a preflight is answered, what responses say.
#include "proxy/grpc_web/cors.h"

#include <gtest/gtest.h>

#include "support/h2_frames.h"

namespace sluice::proxy::grpc_web {
namespace {

using h2::Fields;

http2::HeaderList List(const Fields& fields) {
  http2::HeaderList list;
  for (const auto& [name, value] : fields) list.Add(name, value);
  return list;
}

Fields FieldsOf(const http2::HeaderList& list) {
  Fields fields;
  for (const http2::Field* field : list) fields.emplace_back(field->name(), field->value());
  return fields;
}

CorsOptions Options(std::vector<std::string> origins) {
  CorsOptions options;
  options.origins = std::move(origins);
  return options;
}

http2::HeaderList Preflight(const std::string& origin, const std::string& headers = "content-type,x-grpc-web") {
  return List({{":method", "OPTIONS"},
               {":path", "/pkg.Service/Method"},
               {"origin", origin},
               {"access-control-request-method", "POST"},
               {"access-control-request-headers", headers}});
}

TEST(Cors, OriginsAreEqualAsAWhole) {
  const Cors cors(Options({"https://app.example.com", "http://localhost:8080"}));
  EXPECT_TRUE(cors.Allows("https://app.example.com"));
  EXPECT_TRUE(cors.Allows("http://localhost:8080"));
  for (const char* origin :
       {"", "null", "http://app.example.com", "https://app.example.com:8443", "https://app.example.com.evil.org",
        "https://xapp.example.com", "http://localhost", "https://app.example.co"}) {
    EXPECT_FALSE(cors.Allows(origin)) << origin;
  }
}

TEST(Cors, AStarStandsForNamesBelow) {
  const Cors cors(Options({"https://*.example.com", "http://*.test:81"}));
  EXPECT_TRUE(cors.Allows("https://a.example.com"));
  EXPECT_TRUE(cors.Allows("https://a.b.example.com"));
  EXPECT_TRUE(cors.Allows("http://x.test:81"));
  for (const char* origin : {"https://example.com", "https://.example.com", "http://a.example.com",
                             "https://aexample.com", "https://a.example.com:8443", "https://evil.org/.example.com",
                             "https://evil.org:1.example.com", "https://u@v.example.com", "http://x.test"}) {
    EXPECT_FALSE(cors.Allows(origin)) << origin;
  }
}

TEST(Cors, OnlyTheBrowsersQuestionIsAPreflight) {
  EXPECT_TRUE(Cors::IsPreflight(Preflight("https://a")));
  EXPECT_FALSE(Cors::IsPreflight(List({{":method", "OPTIONS"}, {"origin", "https://a"}})));
  EXPECT_FALSE(Cors::IsPreflight(List({{":method", "OPTIONS"}, {"access-control-request-method", "POST"}})));
  EXPECT_FALSE(Cors::IsPreflight(
      List({{":method", "POST"}, {"origin", "https://a"}, {"access-control-request-method", "POST"}})));
}

TEST(Cors, APreflightLearnsWhatIsAllowed) {
  CorsOptions options = Options({"https://a.example.com"});
  options.headers = {"authorization", "x-tenant"};
  const Cors cors(options);
  EXPECT_EQ(FieldsOf(cors.AnswerPreflight(Preflight("https://a.example.com"))),
            (Fields{{":status", "204"},
                    {"vary", "origin"},
                    {"access-control-allow-origin", "https://a.example.com"},
                    {"access-control-allow-methods", "POST"},
                    {"access-control-allow-headers",
                     "content-type, x-grpc-web, x-user-agent, grpc-timeout, authorization, x-tenant"},
                    {"access-control-max-age", "600"}}));
}

TEST(Cors, AnotherOriginLearnsNothing) {
  const Cors cors(Options({"https://a.example.com"}));
  EXPECT_EQ(FieldsOf(cors.AnswerPreflight(Preflight("https://b.example.com"))),
            (Fields{{":status", "204"}, {"vary", "origin"}}));
  http2::HeaderList response = List({{":status", "200"}});
  cors.AddTo("https://b.example.com", response);
  cors.AddTo("", response);
  EXPECT_EQ(FieldsOf(response), (Fields{{":status", "200"}, {"vary", "origin"}, {"vary", "origin"}}));
}

TEST(Cors, AStarForHeadersIsWhatIsAskedFor) {
  CorsOptions options = Options({"*"});
  options.headers = {"*"};
  const Cors cors(options);
  const auto allowed = [&](const std::string& asked) {
    return std::string(
        cors.AnswerPreflight(Preflight("https://a", asked)).Find("access-control-allow-headers")->value());
  };
  EXPECT_EQ(allowed("authorization,x-any"), "authorization,x-any");
  EXPECT_EQ(allowed(""), "content-type, x-grpc-web, x-user-agent, grpc-timeout");
  EXPECT_EQ(allowed("a\tb"), "content-type, x-grpc-web, x-user-agent, grpc-timeout");
  EXPECT_EQ(cors.AnswerPreflight(Preflight("https://a")).Find("vary")->value(),
            "origin, access-control-request-headers");
}

TEST(Cors, ResponsesSayWhatAScriptMayRead) {
  CorsOptions options = Options({"https://a.example.com"});
  options.expose = {"x-cost"};
  options.credentials = true;
  http2::HeaderList response = List({{":status", "200"}});
  Cors(options).AddTo("https://a.example.com", response);
  EXPECT_EQ(FieldsOf(response),
            (Fields{{":status", "200"},
                    {"vary", "origin"},
                    {"access-control-allow-origin", "https://a.example.com"},
                    {"access-control-allow-credentials", "true"},
                    {"access-control-expose-headers", "grpc-status, grpc-message, grpc-status-details-bin, x-cost"}}));
}

TEST(Cors, AStarIsExposedAsItStands) {
  CorsOptions options = Options({"https://a.example.com"});
  options.expose = {"*"};
  http2::HeaderList response;
  Cors(options).AddTo("https://a.example.com", response);
  EXPECT_EQ(response.Find("access-control-expose-headers")->value(),
            "grpc-status, grpc-message, grpc-status-details-bin, *");
}

TEST(Cors, EveryOriginIsAStar) {
  http2::HeaderList response;
  Cors(Options({"*"})).AddTo("https://a.example.com", response);
  EXPECT_EQ(response.Find("access-control-allow-origin")->value(), "*");
}

TEST(Cors, WithoutOriginsItSaysNothing) {
  http2::HeaderList response;
  Cors(Options({})).AddTo("https://a.example.com", response);
  EXPECT_TRUE(response.empty());
}

}  // namespace
}  // namespace sluice::proxy::grpc_web

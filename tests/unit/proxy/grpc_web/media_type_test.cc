// Which content-type and accept fields are of gRPC-Web, and what they become.
#include "proxy/grpc_web/media_type.h"

#include <gtest/gtest.h>

namespace sluice::proxy::grpc_web {
namespace {

TEST(MediaType, BothKindsWithAndWithoutTheMessagesFormat) {
  EXPECT_EQ(ParseMediaType("application/grpc-web"), (MediaType{false, ""}));
  EXPECT_EQ(ParseMediaType("application/grpc-web+proto"), (MediaType{false, "proto"}));
  EXPECT_EQ(ParseMediaType("application/grpc-web-text"), (MediaType{true, ""}));
  EXPECT_EQ(ParseMediaType("application/grpc-web-text+proto"), (MediaType{true, "proto"}));
  EXPECT_EQ(ParseMediaType("application/grpc-web-text-base64"), (MediaType{true, ""}));
  EXPECT_EQ(ParseMediaType("application/grpc-web+json"), (MediaType{false, "json"}));
}

TEST(MediaType, CaseAndParametersSayNothing) {
  EXPECT_EQ(ParseMediaType("Application/gRPC-Web-Text+proto; charset=utf-8"), (MediaType{true, "proto"}));
  EXPECT_EQ(ParseMediaType(" application/grpc-web ;x=y"), (MediaType{false, ""}));
}

TEST(MediaType, OthersAreNone) {
  for (const char* type :
       {"", "application/grpc", "application/grpc+proto", "application/grpc-webx", "application/grpc-web+",
        "application/grpc-web-texts", "application/grpc-web-base64", "text/application/grpc-web", "*/*"}) {
    EXPECT_EQ(ParseMediaType(type), std::nullopt) << type;
  }
}

TEST(MediaType, TheFirstOfAnAcceptFieldCounts) {
  EXPECT_EQ(ParseAccept("application/grpc-web-text"), (MediaType{true, ""}));
  EXPECT_EQ(ParseAccept("*/*, application/grpc-web+proto;q=0.5, application/grpc-web-text"),
            (MediaType{false, "proto"}));
  EXPECT_EQ(ParseAccept("*/*"), std::nullopt);
  EXPECT_EQ(ParseAccept(""), std::nullopt);
}

TEST(MediaType, TheUpstreamIsToldGrpc) {
  EXPECT_EQ(ToGrpcType({false, ""}), "application/grpc");
  EXPECT_EQ(ToGrpcType({true, "proto"}), "application/grpc");
  EXPECT_EQ(ToGrpcType({true, "json"}), "application/grpc+json");
}

TEST(MediaType, TheClientIsToldTheFormat) {
  EXPECT_EQ(ToWebType("application/grpc", false), "application/grpc-web+proto");
  EXPECT_EQ(ToWebType("application/grpc+proto", true), "application/grpc-web-text+proto");
  EXPECT_EQ(ToWebType("application/grpc+json; charset=utf-8", false), "application/grpc-web+json");
}

}  // namespace
}  // namespace sluice::proxy::grpc_web

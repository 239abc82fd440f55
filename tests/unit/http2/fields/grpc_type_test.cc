// What a content-type says of gRPC.
#include "http2/fields/grpc_type.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

using Kind = GrpcType::Kind;

TEST(GrpcType, ATypeIsAWholeWordOfEitherCase) {
  for (const char* type : {"application/grpc", "Application/gRPC", "APPLICATION/GRPC", " application/grpc\t",
                           "application/grpc;charset=utf-8", "application/grpc ; a=b"}) {
    EXPECT_TRUE(IsGrpcType(type)) << type;
    EXPECT_EQ(ParseGrpcType(type).format, "") << type;
  }
  for (const char* type : {"", "application/grpcish", "application/grpc_x", "application/grp", "application/grpc/a",
                           "xapplication/grpc", "application/grpc+", "application/grpc foo", "text/plain"}) {
    EXPECT_EQ(ParseGrpcType(type).kind, Kind::kNone) << type;
    EXPECT_FALSE(IsGrpcType(type)) << type;
  }
}

TEST(GrpcType, TheFormatFollowsThePlus) {
  EXPECT_EQ(ParseGrpcType("application/grpc+json").format, "json");
  EXPECT_EQ(ParseGrpcType("Application/gRPC+Proto; x=y").format, "Proto");
  EXPECT_TRUE(IsGrpcType("application/grpc+proto"));
}

// The format goes into content-types of ours.
TEST(GrpcType, AFormatThatIsNoWordIsNotNamed) {
  EXPECT_TRUE(IsGrpcType("application/grpc+a\"b"));
  EXPECT_EQ(ParseGrpcType("application/grpc+a\"b").format, "");
  EXPECT_EQ(ParseGrpcType("application/grpc+" + std::string(64, 'a')).format.size(), 64u);
  EXPECT_EQ(ParseGrpcType("application/grpc+" + std::string(65, 'a')).format, "");
}

TEST(GrpcType, GrpcWebIsAKindOfItsOwn) {
  EXPECT_EQ(ParseGrpcType("application/grpc-web").kind, Kind::kWeb);
  EXPECT_EQ(ParseGrpcType("application/grpc-web+json").format, "json");
  EXPECT_EQ(ParseGrpcType("application/grpc-web-text").kind, Kind::kWebText);
  EXPECT_EQ(ParseGrpcType("Application/Grpc-Web-Text-Base64+proto;x").kind, Kind::kWebText);
  EXPECT_EQ(ParseGrpcType("application/grpc-webx").kind, Kind::kNone);
  EXPECT_EQ(ParseGrpcType("application/grpc-web-base64").kind, Kind::kNone);
  EXPECT_FALSE(IsGrpcType("application/grpc-web"));
}

}  // namespace
}  // namespace sluice::http2

#include "proxy/grpc_status.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::proxy {
namespace {

using base::ErrorKind;

constexpr size_t kKinds = base::kErrorKinds;

TEST(GrpcStatus, EveryKindOfErrorHasACodeAndAReasonOfItsOwn) {
  std::set<std::string_view> reasons;
  for (size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    EXPECT_NE(ToGrpcCode(kind), GrpcCode::kOk) << i;
    EXPECT_FALSE(base::Reason(kind).empty()) << i;
    EXPECT_TRUE(reasons.insert(base::Reason(kind)).second) << base::Reason(kind);
  }
}

TEST(GrpcStatus, WhatAClientMayTryAgainIsUnavailable) {
  for (ErrorKind kind : {ErrorKind::kNoEndpoint, ErrorKind::kConnectFailed, ErrorKind::kConnectTimeout,
                         ErrorKind::kConnectionLost, ErrorKind::kConnectionEnded, ErrorKind::kPendingTimeout,
                         ErrorKind::kPoisonCall, ErrorKind::kUpstreamRefused, ErrorKind::kDraining}) {
    EXPECT_EQ(ToGrpcCode(kind), GrpcCode::kUnavailable) << base::Reason(kind);
  }
  EXPECT_EQ(ToGrpcCode(ErrorKind::kDeadlineExceeded), GrpcCode::kDeadlineExceeded);
  EXPECT_EQ(ToGrpcCode(ErrorKind::kCancelled), GrpcCode::kCancelled);
  EXPECT_EQ(ToGrpcCode(ErrorKind::kQueueFull), GrpcCode::kResourceExhausted);
  EXPECT_EQ(ToGrpcCode(ErrorKind::kTooLarge), GrpcCode::kResourceExhausted);
  EXPECT_EQ(ToGrpcCode(ErrorKind::kNoRoute), GrpcCode::kUnimplemented);
}

TEST(GrpcStatus, OfAResponseThatIsNoGrpcTheHttpStatusCounts) {
  for (const char* status : {"429", "502", "503", "504"})
    EXPECT_EQ(FromHttpStatus(status), GrpcCode::kUnavailable) << status;
  EXPECT_EQ(FromHttpStatus("400"), GrpcCode::kInternal);
  EXPECT_EQ(FromHttpStatus("401"), GrpcCode::kUnauthenticated);
  EXPECT_EQ(FromHttpStatus("403"), GrpcCode::kPermissionDenied);
  EXPECT_EQ(FromHttpStatus("404"), GrpcCode::kUnimplemented);
  for (const char* status : {"500", "302", "", "5030"}) EXPECT_EQ(FromHttpStatus(status), GrpcCode::kUnknown) << status;
}

TEST(GrpcStatus, MessagesArePercentEncoded) {
  EXPECT_EQ(PercentEncode("plain ~text"), "plain ~text");
  EXPECT_EQ(PercentEncode("100%\n"), "100%25%0A");
  EXPECT_EQ(PercentEncode("\x7f\xc3\xa4"), "%7F%C3%A4");
  EXPECT_EQ(PercentEncode(std::string_view("\0", 1)), "%00");
  EXPECT_EQ(PercentEncode(""), "");
}

TEST(GrpcStatus, OnlyNumbersUpToSixteenAreCodes) {
  EXPECT_EQ(ParseGrpcStatus("0"), GrpcCode::kOk);
  EXPECT_EQ(ParseGrpcStatus("16"), GrpcCode::kUnauthenticated);
  for (const char* text : {"", "17", "-1", "+1", " 1", "1 ", "x", "99999999999999999999"}) {
    EXPECT_EQ(ParseGrpcStatus(text), GrpcCode::kUnknown) << text;
  }
}

TEST(GrpcStatus, AnErrorAsHeadersBeginsWithTheStatusOnlyWhereNothingWasSent) {
  const GrpcError error = ToGrpcError(base::MakeError(ErrorKind::kNoRoute, "no r\xc3\xb6ute"));
  http2::HeaderList alone = MakeTrailers(error, true);
  ASSERT_EQ(alone.size(), 6u);
  EXPECT_EQ(alone[0].name(), ":status");
  EXPECT_EQ(alone[0].value(), "200");
  EXPECT_EQ(alone[1].value(), "application/grpc");
  http2::HeaderList trailers = MakeTrailers(error, false);
  ASSERT_EQ(trailers.size(), 4u);
  EXPECT_EQ(trailers[0].name(), "grpc-status");
  EXPECT_EQ(trailers[0].value(), "12");
  EXPECT_EQ(trailers[1].value(), "no r%C3%B6ute");
  EXPECT_EQ(trailers[2].value(), "no_route");
  EXPECT_EQ(trailers[3].name(), "sluice-processed");
  EXPECT_EQ(trailers[3].value(), "no");
  base::Error lost = base::MakeError(ErrorKind::kConnectionLost, "");
  lost.maybe_processed = true;
  http2::HeaderList doubt = MakeTrailers(ToGrpcError(lost), false);
  ASSERT_EQ(doubt.size(), 3u);  // without a message
  EXPECT_EQ(doubt[2].value(), "maybe");
}

TEST(GrpcStatus, EveryCodeHasItsName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kGrpcCodes; ++i) EXPECT_TRUE(names.insert(ToString(static_cast<GrpcCode>(i))).second);
  EXPECT_EQ(ToString(GrpcCode::kUnavailable), "UNAVAILABLE");
}

}  // namespace
}  // namespace sluice::proxy

// Trailers as bytes of the body.
#include "proxy/grpc_web/trailer_frame.h"

#include <gtest/gtest.h>

namespace sluice::proxy::grpc_web {
namespace {

using namespace std::string_view_literals;

TEST(TrailerFrame, HasEachFieldOnALine) {
  http2::HeaderList trailers;
  trailers.Add("grpc-status", "5");
  trailers.Add("grpc-message", "not%20here");
  trailers.Add("x-bin", "");
  EXPECT_EQ(MakeTrailerFrame(trailers), "\x80\0\0\0\x33grpc-status: 5\r\ngrpc-message: not%20here\r\nx-bin: \r\n"sv);
}

TEST(TrailerFrame, TheLengthHasFourBytes) {
  http2::HeaderList trailers;
  trailers.Add("a", std::string(66'000, 'v'));
  const std::string frame = MakeTrailerFrame(trailers);
  EXPECT_EQ(frame.size(), 5u + 66'005);
  EXPECT_EQ(frame.substr(0, 5), "\x80\0\x01\x01\xd5"sv);
}

TEST(TrailerFrame, AValueCannotBeginALine) {
  http2::HeaderList trailers;
  trailers.Add("a", "1\r\ngrpc-status: 0");
  trailers.Add("grpc-status", "7");
  EXPECT_EQ(MakeTrailerFrame(trailers), "\x80\0\0\0\x10grpc-status: 7\r\n"sv);
}

}  // namespace
}  // namespace sluice::proxy::grpc_web

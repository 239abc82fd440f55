// Call: one echo call of any of the four kinds, with all that came back, so that a test can be written once for four.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sluice/echo/v1/echo.grpc.pb.h"

namespace sluice::integration {

enum class Kind { kUnary, kServerStream, kClientStream, kBidiStream };
inline constexpr Kind kKinds[] = {Kind::kUnary, Kind::kServerStream, Kind::kClientStream, Kind::kBidiStream};
std::string ToString(Kind kind);

// A channel with a connection of its own and no limits or retries of gRPC's.
std::shared_ptr<grpc::Channel> Connect(
    const std::string& target,
    std::shared_ptr<grpc::ChannelCredentials> credentials = nullptr);  // null: plain text

struct Reply {
  grpc::Status status;
  std::vector<echo::v1::EchoReply> messages;
  std::multimap<std::string, std::string> headers, trailers;

  // The only value of that name; empty if there is none or more than one.
  std::string Header(const std::string& name) const;
  std::string Trailer(const std::string& name) const;
};

// Sends `messages` copies of the request (one for the kinds that take one) and reads to the end. BidiStream
// reads a reply after each message. The context may carry metadata and a deadline and be cancelled from another thread.
Reply Call(echo::v1::Echo::Stub* stub, Kind kind, grpc::ClientContext* context, const echo::v1::EchoRequest& request,
           int messages = 1);

// "code 5 (text)" for messages of assertions.
std::string Describe(const grpc::Status& status);

}  // namespace sluice::integration

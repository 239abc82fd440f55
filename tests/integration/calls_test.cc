// Calls of the four kinds, good and bad, through a whole server and, to prove the harness itself, straight to
// a backend.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <tuple>

#include "support/backends.h"
#include "support/echo_call.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using echo::v1::EchoReply;
using echo::v1::EchoRequest;
using grpc::StatusCode;

constexpr uint32_t kForEver = 3'600'000;  // a delay that only a cancellation ends
constexpr size_t kLarge = 64u << 20;

enum class Way { kDirect, kThroughSluice };

// One of each for the whole program: the tests also share what an earlier one left behind.
struct World {
  Backends backends{1};
  Proxy proxy{[this] {
    ProxyConfig config;
    config.endpoints = backends.endpoints();
    return config;
  }()};
  std::string target(Way way) { return way == Way::kDirect ? backends.address(0) : proxy.target(); }
  const echo::EchoService& service() { return backends[0].service(); }
};
World& TheWorld() {
  static World* world = new World;
  return *world;
}
class Cleanup : public testing::Environment {
 public:
  void TearDown() override { delete &TheWorld(); }
};
[[maybe_unused]] const auto* const kCleanup = testing::AddGlobalTestEnvironment(new Cleanup);

class CallsBase : public testing::Test {
 protected:
  explicit CallsBase(Way way)
      : world_(TheWorld()),
        way_(way),
        channel_(Connect(world_.target(way))),
        stub_(echo::v1::Echo::NewStub(channel_)) {}

  // Whatever a call was like, nothing of it stays behind.
  void TearDown() override {
    EXPECT_TRUE(WaitUntil([&] { return world_.service().in_flight() == 0; }));
    if (way_ == Way::kThroughSluice) {
      EXPECT_TRUE(WaitUntil([&] { return world_.proxy.Metric("sluice_calls_in_flight") == 0; }));
    }
  }

  World& world_;
  const Way way_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<echo::v1::Echo::Stub> stub_;
};

std::string NameOf(Way way) { return way == Way::kDirect ? "Direct" : "ThroughSluice"; }

// Once per way and kind.
class EachKind : public CallsBase, public testing::WithParamInterface<std::tuple<Way, Kind>> {
 protected:
  EachKind() : EachKind(GetParam()) {}
  explicit EachKind(const std::tuple<Way, Kind>& param) : CallsBase(std::get<0>(param)), kind_(std::get<1>(param)) {}
  const Kind kind_;
};
INSTANTIATE_TEST_SUITE_P(
    Calls, EachKind, testing::Combine(testing::Values(Way::kDirect, Way::kThroughSluice), testing::ValuesIn(kKinds)),
    [](const auto& info) { return NameOf(std::get<0>(info.param)) + ToString(std::get<1>(info.param)); });

TEST_P(EachKind, SucceedsAndBringsThePayloadBack) {
  EchoRequest request;
  request.set_payload("payload");
  request.set_reply_count(5);
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, request, 5);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  const bool many = kind_ == Kind::kServerStream || kind_ == Kind::kBidiStream;
  ASSERT_EQ(reply.messages.size(), many ? 5u : 1u);
  for (size_t i = 0; i < reply.messages.size(); ++i) {
    EXPECT_EQ(reply.messages[i].index(), i);
    EXPECT_EQ(reply.messages[i].backend(), "echo-1");
    if (kind_ != Kind::kClientStream) {
      EXPECT_EQ(reply.messages[i].payload(), "payload");
    }
  }
  const bool counted = kind_ == Kind::kClientStream || kind_ == Kind::kBidiStream;
  EXPECT_EQ(reply.messages.back().received_messages(), counted ? 5u : 1u);
  EXPECT_EQ(reply.Header("echo-backend"), "echo-1");
  EXPECT_EQ(reply.Trailer("echo-backend"), "echo-1");
}

TEST_P(EachKind, ErrorArrivesWithItsMessageAndDetails) {
  EchoRequest request;
  request.mutable_failure()->set_code(StatusCode::FAILED_PRECONDITION);
  request.mutable_failure()->set_message("größer als 100% \x01\n \"und\" mehr");
  request.mutable_failure()->set_details(std::string("\0\xff bytes \0", 10));
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(reply.status.error_message(), request.failure().message());
  EXPECT_EQ(reply.status.error_details(), request.failure().details());
  EXPECT_EQ(reply.Trailer("sluice-reason"), "") << "the backend's error is not the proxy's";
}

TEST_P(EachKind, TrailersOnlyErrorArrivesWithItsMessage) {
  EchoRequest request;
  request.set_trailers_only(true);
  request.mutable_failure()->set_code(StatusCode::NOT_FOUND);
  request.mutable_failure()->set_message("no such thing");
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(reply.status.error_message(), "no such thing");
  EXPECT_EQ(reply.Header("echo-backend"), "");
  EXPECT_EQ(reply.Trailer("echo-backend"), "echo-1");
}

TEST_P(EachKind, ErrorAfterMessagesArrivesAfterThem) {
  if (kind_ == Kind::kUnary || kind_ == Kind::kClientStream) return;  // they have one reply or an error
  EchoRequest request;
  request.set_reply_count(10);
  request.mutable_failure()->set_code(StatusCode::ABORTED);
  request.mutable_failure()->set_after(3);
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, request, 10);
  EXPECT_EQ(reply.status.error_code(), StatusCode::ABORTED);
  EXPECT_EQ(reply.messages.size(), kind_ == Kind::kServerStream ? 3u : 2u);
}

TEST_P(EachKind, CancelByTheClientReachesTheBackend) {
  EchoRequest request;
  request.set_delay_ms(kForEver);
  request.set_reply_count(1);
  grpc::ClientContext context;
  const uint64_t cancelled = world_.service().cancelled();
  Reply reply;
  std::thread call([&] { reply = Call(stub_.get(), kind_, &context, request); });
  ASSERT_TRUE(WaitUntil([&] { return world_.service().in_flight() == 1; }));
  context.TryCancel();
  call.join();
  EXPECT_EQ(reply.status.error_code(), StatusCode::CANCELLED) << Describe(reply.status);
  EXPECT_TRUE(WaitUntil([&] { return world_.service().cancelled() == cancelled + 1; }));
}

TEST_P(EachKind, CancelByTheBackendReachesTheClient) {
  EchoRequest request;
  request.mutable_failure()->set_reset(true);
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::CANCELLED) << Describe(reply.status);
}

TEST_P(EachKind, DeadlineEndsTheCallOnBothSides) {
  EchoRequest request;
  request.set_delay_ms(kForEver);
  request.set_reply_count(1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  const uint64_t cancelled = world_.service().cancelled();
  const Reply reply = Call(stub_.get(), kind_, &context, request);
  EXPECT_EQ(reply.status.error_code(), StatusCode::DEADLINE_EXCEEDED) << Describe(reply.status);
  EXPECT_TRUE(WaitUntil([&] { return world_.service().cancelled() == cancelled + 1; }));
}

TEST_P(EachKind, DeadlineIsPassedOnAsTheTimeThatRemains) {
  EchoRequest request;
  request.set_reply_count(1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(100));
  const Reply reply = Call(stub_.get(), kind_, &context, request);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  EXPECT_GT(reply.messages.at(0).time_left_ms(), 100'000 - kLongWait / std::chrono::milliseconds(1));
  EXPECT_LE(reply.messages.at(0).time_left_ms(), 101'000);  // gRPC C++ rounds a timeout up to three digits
}

TEST_P(EachKind, WithoutADeadlineTheBackendSeesNone) {
  EchoRequest request;
  request.set_reply_count(1);
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, request);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  EXPECT_EQ(reply.messages.at(0).time_left_ms(), -1);
}

TEST_P(EachKind, LargeMessageGoesThroughInBothDirections) {
  EchoRequest request;
  request.set_reply_count(1);
  std::string* payload = request.mutable_payload();
  payload->resize(kLarge);
  for (size_t i = 0; i < kLarge; ++i) (*payload)[i] = static_cast<char>(i * 31 + (i >> 16));
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, request);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  ASSERT_EQ(reply.messages.size(), 1u);
  EXPECT_EQ(reply.messages[0].received_bytes(), kLarge);
  if (kind_ == Kind::kClientStream) return;  // counts what it got and does not send it back
  EXPECT_TRUE(reply.messages[0].payload() == request.payload());
}

TEST_P(EachKind, EmptyMessageIsAMessage) {
  EchoRequest request;
  if (kind_ == Kind::kServerStream) request.set_reply_count(1);
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, request);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  EXPECT_EQ(reply.messages.size(), 1u);
}

TEST_P(EachKind, EmptyStreamIsNotAMessage) {
  if (kind_ == Kind::kUnary) return;
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), kind_, &context, EchoRequest(), 0);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  EXPECT_EQ(reply.messages.size(), kind_ == Kind::kClientStream ? 1u : 0u);
  EXPECT_EQ(reply.Trailer("echo-backend"), "echo-1");
}

TEST_P(EachKind, HeadersArriveBeforeTheFirstMessage) {
  EchoRequest request;
  request.set_headers_first(true);
  request.set_delay_ms(kForEver);
  request.set_reply_count(1);
  if (kind_ != Kind::kServerStream && kind_ != Kind::kBidiStream) return;  // only there can a C++ client look
  grpc::ClientContext context;
  EchoReply reply;
  if (kind_ == Kind::kServerStream) {
    auto reader = stub_->ServerStream(&context, request);
    reader->WaitForInitialMetadata();
    EXPECT_EQ(context.GetServerInitialMetadata().count("echo-backend"), 1u);
    context.TryCancel();
    while (reader->Read(&reply)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), StatusCode::CANCELLED);
  } else {
    auto stream = stub_->BidiStream(&context);
    ASSERT_TRUE(stream->Write(request));
    stream->WaitForInitialMetadata();
    EXPECT_EQ(context.GetServerInitialMetadata().count("echo-backend"), 1u);
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
  }
}

TEST_P(EachKind, CompressedMessagesAreLeftAlone) {
  EchoRequest request;
  request.set_payload(std::string(100'000, 'z'));
  request.set_reply_count(2);
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const Reply reply = Call(stub_.get(), kind_, &context, request, 2);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  if (kind_ != Kind::kClientStream) {
    EXPECT_EQ(reply.messages.at(0).payload(), request.payload());
  }
}

// Once per way.
class EachWay : public CallsBase, public testing::WithParamInterface<Way> {
 protected:
  EachWay() : CallsBase(GetParam()) {}

  // The values of a metadata field as the backend got them, in order.
  std::vector<std::string> Seen(grpc::ClientContext* context, const std::string& name) {
    EchoRequest request;
    request.set_return_metadata(true);
    const Reply reply = Call(stub_.get(), Kind::kUnary, context, request);
    EXPECT_TRUE(reply.status.ok()) << Describe(reply.status);
    std::vector<std::string> values;
    if (!reply.status.ok()) return values;
    for (const auto& field : reply.messages[0].metadata()) {
      if (field.key() == name) values.push_back(field.value());
    }
    return values;
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, EachWay, testing::Values(Way::kDirect, Way::kThroughSluice),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(EachWay, RepeatedMetadataKeepsItsOrder) {
  grpc::ClientContext context;
  std::vector<std::string> values;
  for (int i = 0; i < 20; ++i) values.push_back("value-" + std::to_string((i * 7) % 20));
  for (const std::string& value : values) context.AddMetadata("x-many", value);
  EXPECT_EQ(Seen(&context, "x-many"), values);
}

TEST_P(EachWay, BinaryMetadataArrivesByteForByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  grpc::ClientContext context;
  context.AddMetadata("x-all-bin", bytes);
  context.AddMetadata("x-all-bin", "");
  context.AddMetadata("x-all-bin", std::string("\0", 1));
  EXPECT_THAT(Seen(&context, "x-all-bin"), testing::ElementsAre(bytes, "", std::string("\0", 1)));
}

TEST_P(EachWay, AsciiMetadataArrivesCharacterForCharacter) {
  std::string text;
  for (char c = 0x21; c < 0x7f; ++c) text.push_back(c);
  grpc::ClientContext context;
  context.AddMetadata("x-ascii", text + " inner space " + text);
  EXPECT_THAT(Seen(&context, "x-ascii"), testing::ElementsAre(text + " inner space " + text));
}

TEST_P(EachWay, MetadataUpToTheLimitGoesThroughInBothDirections) {
  // 50 fields of about 1200 bytes as RFC 9113 6.5.2 counts them stay just below the default limit of 64 KiB.
  EchoRequest request;
  request.set_metadata_count(50);
  request.set_metadata_bytes(1200);
  grpc::ClientContext context;
  const std::string value(1200, 'v');
  for (int i = 0; i < 50; ++i) context.AddMetadata("x-field-" + std::to_string(i), value);
  const Reply reply = Call(stub_.get(), Kind::kUnary, &context, request);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(reply.Header("echo-header-" + std::to_string(i)).size(), 1200u);
    EXPECT_EQ(reply.Trailer("echo-trailer-" + std::to_string(i)).size(), 1200u);
  }
}

TEST_P(EachWay, TheAuthorityIsTheClients) {
  EchoRequest request;
  request.set_return_metadata(true);
  grpc::ClientContext context;
  context.set_authority("users.example.com");
  const Reply reply = Call(stub_.get(), Kind::kUnary, &context, request);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  EXPECT_EQ(reply.messages[0].authority(), "users.example.com");
}

TEST_P(EachWay, AnUnknownMethodIsTheBackendsToRefuse) {
  grpc::GenericStub generic(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto call = generic.PrepareUnaryCall(&context, "/sluice.echo.v1.Echo/NoSuchMethod", grpc::ByteBuffer(), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED) << Describe(status);
}

TEST_P(EachWay, AThousandStreamsAtOnceOnOneConnection) {
  constexpr size_t kStreams = 1000;
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<EchoRequest, EchoReply>> stream;
  };
  std::vector<Stream> streams(kStreams);
  EchoRequest request;
  EchoReply reply;
  for (Stream& one : streams) {
    one.stream = stub_->BidiStream(&one.context);
    ASSERT_TRUE(one.stream->Write(request));
  }
  for (Stream& one : streams) ASSERT_TRUE(one.stream->Read(&reply)) << Describe(one.stream->Finish());
  EXPECT_EQ(world_.service().in_flight(), static_cast<int64_t>(kStreams));
  for (size_t i = 0; i < kStreams; ++i) {
    request.set_payload("from " + std::to_string(i));
    ASSERT_TRUE(streams[i].stream->Write(request));
    streams[i].stream->WritesDone();
  }
  for (size_t i = 0; i < kStreams; ++i) {
    ASSERT_TRUE(streams[i].stream->Read(&reply));
    EXPECT_EQ(reply.payload(), "from " + std::to_string(i));
    const grpc::Status status = streams[i].stream->Finish();
    EXPECT_TRUE(status.ok()) << Describe(status);
  }
}

TEST_P(EachWay, ManySmallMessagesKeepTheirOrder) {
  EchoRequest request;
  request.set_reply_count(20'000);
  request.set_payload("m");
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), Kind::kServerStream, &context, request);
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  ASSERT_EQ(reply.messages.size(), 20'000u);
  for (size_t i = 0; i < reply.messages.size(); ++i) ASSERT_EQ(reply.messages[i].index(), i);
}

TEST_P(EachWay, TheBackendMayAnswerAfterTheClientHasHalfClosed) {
  EchoRequest request;
  request.set_no_reply(true);
  request.mutable_failure()->set_code(StatusCode::OUT_OF_RANGE);
  request.mutable_failure()->set_after(1000);
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), Kind::kBidiStream, &context, request, 100);
  EXPECT_EQ(reply.status.error_code(), StatusCode::OUT_OF_RANGE) << Describe(reply.status);
}

TEST_P(EachWay, TheBackendMayEndBeforeTheClientHasSentAll) {
  EchoRequest request;
  request.set_payload(std::string(1 << 20, 'p'));
  request.mutable_failure()->set_code(StatusCode::RESOURCE_EXHAUSTED);
  request.mutable_failure()->set_after(2);
  grpc::ClientContext context;
  const Reply reply = Call(stub_.get(), Kind::kClientStream, &context, request, 200);
  EXPECT_EQ(reply.status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << Describe(reply.status);
}

}  // namespace
}  // namespace sluice::integration

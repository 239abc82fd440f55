// Answers of all kinds through the response cache: the same bytes as from the upstream, kept for as long as the
// upstream says.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <map>

#include "support/cache_fixture.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;

// Everything a gRPC answer can have, the same each time.
grpc::Status FullAnswer(const GateBackend::Call& call) {
  call.context->AddInitialMetadata("a-header", "one");
  call.context->AddInitialMetadata("a-header", "two");
  call.context->AddInitialMetadata("empty", "");
  call.context->AddInitialMetadata("data-bin", std::string("\0\xff\x80,bin\0", 8));
  call.context->AddTrailingMetadata("a-trailer", "x=\"y\", z");
  call.context->AddTrailingMetadata("trail-bin", std::string("\0\1\2\0", 4));
  call.context->AddTrailingMetadata("trail-bin", "");
  const std::string& wanted = call.request->payload();
  if (wanted == "gzip") call.context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
  if (wanted == "fail") {
    return grpc::Status(StatusCode::NOT_FOUND, "no such thing: \xc3\xa4 100%\n", std::string("\0details\xfe", 9));
  }
  if (wanted == "exhausted") return grpc::Status(StatusCode::RESOURCE_EXHAUSTED, "not cached");
  call.reply->set_payload(wanted == "gzip" ? std::string(20000, 'z') : std::string("\0\1\2\xff", 4));
  if (wanted == "empty") call.reply->Clear();
  return grpc::Status::OK;
}

class WholeAnswer : public Cache {
 protected:
  WholeAnswer() : Cache(FullAnswer) {}
  struct Bytes {
    grpc::Status status;
    std::string message;
    std::multimap<std::string, std::string> headers, trailers;
  };
  // As bytes, without the generated code.
  static Bytes Raw(const std::string& target, const std::string& payload) {
    grpc::GenericStub stub(Connect(target));
    const std::string request = Spec(payload).request.SerializeAsString();
    grpc::Slice slice(request);
    grpc::ByteBuffer in(&slice, 1), out;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongWait);
    grpc::CompletionQueue queue;
    auto call = stub.PrepareUnaryCall(&context, std::string("/") + kService + "/Unary", in, &queue);
    Bytes bytes;
    call->StartCall();
    call->Finish(&out, &bytes.status, &call);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    grpc::Slice whole;
    if (out.Valid() && out.DumpToSingleSlice(&whole).ok()) {
      bytes.message.assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
    }
    for (const auto& [name, value] : context.GetServerInitialMetadata()) {
      bytes.headers.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
    }
    for (const auto& [name, value] : context.GetServerTrailingMetadata()) {
      bytes.trailers.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
    }
    return bytes;
  }
  // Takes out what the cache adds. "hit", ...
  static std::string TakeOut(Bytes& bytes) {
    std::string how;
    for (auto* fields : {&bytes.headers, &bytes.trailers}) {
      if (fields->count("sluice-cache")) how = fields->find("sluice-cache")->second;
      fields->erase("sluice-cache");
      fields->erase("age");
    }
    return how;
  }
  static void ExpectSame(const Bytes& is, const Bytes& should) {
    EXPECT_EQ(is.status.error_code(), should.status.error_code());
    EXPECT_EQ(is.status.error_message(), should.status.error_message());
    EXPECT_EQ(is.status.error_details(), should.status.error_details());
    EXPECT_EQ(is.message, should.message);
    EXPECT_EQ(is.headers, should.headers);
    EXPECT_EQ(is.trailers, should.trailers);
  }
};

TEST_F(WholeAnswer, IsTheSameFromTheBackendAMissAndAHit) {
  Start("errors: [NOT_FOUND], error_ttl: 1h");
  for (const std::string payload : {"plain", "gzip", "empty", "fail"}) {
    SCOPED_TRACE(payload);
    const Bytes direct = Raw(backend_.address(), payload);
    Bytes miss = Raw(proxy_->target(), payload), hit = Raw(proxy_->target(), payload);
    EXPECT_EQ(TakeOut(miss), "");
    EXPECT_EQ(TakeOut(hit), "hit");
    ExpectSame(miss, direct);
    ExpectSame(hit, direct);
    EXPECT_GE(direct.headers.size() + direct.trailers.size(), 4u);
    EXPECT_EQ(direct.status.ok(), payload != "fail");
  }
  for (int i = 0; i < 2; ++i) {
    Bytes other_error = Raw(proxy_->target(), "exhausted");
    EXPECT_EQ(other_error.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(TakeOut(other_error), "");
  }
}

// The upstream says how long, in headers or trailers.
grpc::Status ControlledAnswer(const GateBackend::Call& call) {
  const std::string& wanted = call.request->payload();  // "h:no-store", "t:max-age=0"
  if (wanted[0] == 'h') call.context->AddInitialMetadata("cache-control", wanted.substr(2));
  if (wanted[0] == 't') call.context->AddTrailingMetadata("cache-control", wanted.substr(2));
  call.reply->set_index(call.number);
  return grpc::Status::OK;
}

class ControlledCache : public Cache {
 protected:
  ControlledCache() : Cache(ControlledAnswer) {}
};

TEST_F(ControlledCache, HeedsTheUpstreamsCacheControl) {
  Start();
  for (const std::string no : {"no-store", "no-cache", "private", "max-age=0", "max-age=60, no-store"}) {
    for (const std::string where : {"h:", "t:"}) {
      Call(where + no);
      EXPECT_EQ(How(Call(where + no)), "") << where << no;
    }
  }
  for (const std::string yes : {"max-age=60", "public", "s-maxage=60, max-age=0"}) {
    for (const std::string where : {"h:", "t:"}) {
      Call(where + yes);
      EXPECT_EQ(How(Call(where + yes)), "hit") << where << yes;
    }
  }
}

// A failure goes to every call that shares the fetch, and is not stored.
template <StatusCode code>
grpc::Status FailingAnswer(const GateBackend::Call&) {
  return grpc::Status(code, "broken");
}
template <StatusCode code>
class FailingCache : public Cache {
 protected:
  FailingCache() : Cache(FailingAnswer<code>) {}
  // Twenty calls that share a fetch, and one behind them; `arrived`: how many of the twenty reach the backend.
  void ExpectArrived(size_t arrived) {
    Start();
    backend_.Close();
    const auto made = calls_->Start(Spec("x"), 20);
    ASSERT_TRUE(WaitUntil([&] { return person().Cache().misses() == 20 && backend_.held() == 1; }));
    backend_.Open();
    Await(made);
    EXPECT_EQ(Ended(made, code), 20u);
    EXPECT_EQ(backend_.arrived(), arrived);
    EXPECT_EQ(Call("x").status.error_code(), code);
    EXPECT_EQ(backend_.arrived(), arrived + 1);
  }
};

using UnavailableCache = FailingCache<StatusCode::UNAVAILABLE>;
TEST_F(UnavailableCache, TellsEachCallOfTheFetchOnce) { ExpectArrived(1); }

// The metadata of the one that is sent may be why it fails.
using BrokenCache = FailingCache<StatusCode::INTERNAL>;
TEST_F(BrokenCache, LetsEachCallOfTheFetchGoByItself) { ExpectArrived(20); }

}  // namespace
}  // namespace sluice::integration

// hash_by a field of the request message, named by a descriptor set that protoc wrote at build time, or by its number:
// calls with equal fields go to one endpoint whatever else they carry, and names and numbers mean the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/backends.h"
#include "support/echo_call.h"
#include "support/proxy.h"

namespace sluice::integration {
namespace {

using echo::v1::EchoRequest;

constexpr int kKeys = 60;

class HashField : public testing::Test {
 protected:
  // The endpoint each key goes to, by the field that `set` sets. Everything else differs from call to call.
  std::map<int, std::string> Where(const std::string& hash_by, bool names, void (*set)(EchoRequest*, int)) {
    ProxyConfig config;
    config.endpoints = backends_.endpoints();
    config.top = {"workers: 2"};
    if (names) config.top.push_back("descriptor_set: \"" SLUICE_ECHO_DESCRIPTORS "\"");
    config.hash_by = hash_by;
    config.route = {"service: sluice.echo.v1.Echo"};
    Proxy proxy(config);
    auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
    std::map<int, std::string> where;
    for (int round = 0; round < 3; ++round) {
      for (int key = 0; key < kKeys; ++key) {
        EchoRequest request;
        set(&request, key);
        request.set_reply_bytes(static_cast<uint32_t>(1 + (round * 7 + key) % 50));
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
        const Reply reply = Call(stub.get(), round == 2 ? Kind::kBidiStream : Kind::kUnary, &context, request);
        EXPECT_TRUE(reply.status.ok()) << Describe(reply.status);
        const auto [found, first] = where.emplace(key, reply.Trailer("echo-backend"));
        EXPECT_EQ(reply.Trailer("echo-backend"), found->second) << "key " << key << " in round " << round;
      }
    }
    std::set<std::string> used;
    for (const auto& [key, name] : where) used.insert(name);
    EXPECT_GE(used.size(), backends_.size() / 2) << "keys spread";
    return where;
  }

  Backends backends_{6};
};

void SetPayload(EchoRequest* request, int key) { request->set_payload("key " + std::to_string(key)); }
void SetNumber(EchoRequest* request, int key) { request->set_metadata_bytes(static_cast<uint32_t>(1 + key)); }
// Code 0: no failure after all.
void SetNested(EchoRequest* request, int key) { request->mutable_failure()->set_message("key " + std::to_string(key)); }

TEST_F(HashField, ByNameAndByNumberAreTheSame) {
  EXPECT_EQ(Where("{field: payload}", true, SetPayload), Where("{field: \"1\"}", false, SetPayload));
}

TEST_F(HashField, InsideOfAnotherMessage) {
  EXPECT_EQ(Where("{field: failure.message}", true, SetNested), Where("{field: \"6.2\"}", false, SetNested));
}

TEST_F(HashField, IsAnIntegerToo) { Where("{field: metadata_bytes}", true, SetNumber); }

}  // namespace
}  // namespace sluice::integration

// Access rules, routes by listener and x-forwarded-client-cert with real certificates, clients and endpoints.
#include <gmock/gmock.h>

#include "support/tls_fixture.h"

namespace sluice::integration {
namespace {

using test::MakeCert;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class AccessTest : public Tls {
 protected:
  AccessTest() {
    StartPlainBackend();
    config.listener = {ListenerKeys(ClientCa() + ", require_client_certificate: false"), "name: mesh"};
  }
  // One call, whose metadata is `said` besides; its endpoint returns what it got.
  Reply CallWith(std::shared_ptr<grpc::ChannelCredentials> credentials,
                 const std::vector<std::pair<std::string, std::string>>& said = {}) {
    auto stub = echo::v1::Echo::NewStub(Connect(proxy->target(), std::move(credentials)));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongWait);
    for (const auto& [name, value] : said) context.AddMetadata(name, value);
    echo::v1::EchoRequest request;
    request.set_payload("hello");
    request.set_return_metadata(true);
    return Call(stub.get(), Kind::kUnary, &context, request, 1);
  }
  void Reload() {
    proxy->Rewrite(config);
    const admin::ReloadResult result = proxy->server().Reload();
    EXPECT_TRUE(result.errors.empty()) << result.errors[0];
  }
  static std::vector<std::string> Got(const Reply& reply, const std::string& name) {
    std::vector<std::string> out;
    for (const auto& message : reply.messages) {
      for (const auto& field : message.metadata()) {
        if (field.key() == name) out.push_back(field.value());
      }
    }
    return out;
  }
};

TEST_F(AccessTest, OnlyTheClientsThatARuleNamesMayCall) {
  config.route = {"access: [{action: allow, clients: [spiffe://example.com/app/*]}]"};
  StartProxy();
  EXPECT_TRUE(CallWith(Credentials(ca, &client)).status.ok());
  const auto other = MakeCert({.common_name = "other", .names = "URI:spiffe://example.com/other/one"}, &ca);
  for (const auto& credentials : {Credentials(ca), Credentials(ca, &other)}) {
    const Reply reply = CallWith(credentials, {{"x-forwarded-client-cert", "URI=spiffe://example.com/app/one"}});
    EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << Describe(reply.status);
    EXPECT_EQ(reply.Trailer("sluice-reason"), "access_denied");
  }
  EXPECT_EQ(backend->service().calls(), 1u);
}

TEST_F(AccessTest, AReloadOfTheRulesHoldsForTheNextCallOfAConnection) {
  config.route = {"access: [{action: allow, clients: [spiffe://example.com/app/*]}]"};
  StartProxy();
  auto stub = echo::v1::Echo::NewStub(Connect(proxy->target(), Credentials(ca, &client)));
  const auto status = [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongWait);
    echo::v1::EchoReply reply;
    return stub->Unary(&context, {}, &reply).error_code();
  };
  EXPECT_EQ(status(), grpc::StatusCode::OK);
  config.route = {"access: [{action: deny, status: UNAUTHENTICATED}]"};
  Reload();
  EXPECT_EQ(status(), grpc::StatusCode::UNAUTHENTICATED);
  config.route.clear();
  Reload();
  EXPECT_EQ(status(), grpc::StatusCode::OK);
}

TEST_F(AccessTest, AnEndpointIsToldTheClientsCertificate) {
  config.top.push_back("forwarding: {client_cert: true, remove: [x-user]}");
  StartProxy();
  const Reply reply =
      CallWith(Credentials(ca, &client),
               {{"x-forwarded-client-cert", "URI=spiffe://lie"}, {"x-user", "root"}, {"x-other", "stays"}});
  ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
  const auto said = Got(reply, "x-forwarded-client-cert");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], AllOf(StartsWith("Hash="), HasSubstr(";Subject=\"CN=client\";"),
                             EndsWith(";URI=spiffe://example.com/app/one")));
  EXPECT_TRUE(Got(reply, "x-user").empty());
  EXPECT_EQ(Got(reply, "x-other"), std::vector<std::string>{"stays"});
  EXPECT_TRUE(
      Got(CallWith(Credentials(ca), {{"x-forwarded-client-cert", "URI=spiffe://lie"}}), "x-forwarded-client-cert")
          .empty());
}

}  // namespace
}  // namespace sluice::integration

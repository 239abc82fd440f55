// GrpcCredentials: each handshake gets what was put in last.
#include "admin/grpc_credentials.h"

#include <gmock/gmock.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include "tls_fixture.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;

class GrpcCredentialsTest : public TlsFixture {
 protected:
  void SetUp() override {
    credentials_ = Security().tls;
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", credentials_->ForServer(), &port);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  // The common name of the daemon's certificate on this connection; empty if there was no call. The server has no
  // service, so its answer is UNIMPLEMENTED.
  std::string NameOn(grpc::Channel& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    grpc::ByteBuffer request, response;
    grpc::Slice nothing("");
    request = grpc::ByteBuffer(&nothing, 1);
    const grpc::internal::RpcMethod method("/a.B/C", grpc::internal::RpcMethod::NORMAL_RPC);
    const grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
        &channel, method, &context, request, &response);
    if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED) return "";
    const auto names = context.auth_context()->FindPropertyValues("x509_common_name");
    return names.size() == 1 ? std::string(names[0].data(), names[0].size()) : "";
  }
  std::string NameFor(const test::TlsCert* identity) { return NameOn(*Connect(address_, identity)); }

  std::shared_ptr<GrpcCredentials> credentials_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(GrpcCredentialsTest, AClientNeedsACertificateOfTheRightAuthority) {
  EXPECT_EQ(NameFor(&ops_), "first");
  EXPECT_EQ(NameFor(nullptr), "");
  const test::TlsCert forged = test::MakeCert({"", "URI:spiffe://corp/ops"}, &strange_ca_);
  EXPECT_EQ(NameFor(&forged), "");
  const test::TlsCert own = test::MakeCert({"", "URI:spiffe://corp/ops"});
  EXPECT_EQ(NameFor(&own), "");
  const test::TlsCert old = test::MakeCert({"", "URI:spiffe://corp/ops", false, false, -7200, -3600}, &client_ca_);
  EXPECT_EQ(NameFor(&old), "");
  const auto plain = grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  EXPECT_EQ(NameOn(*plain), "");
}

TEST_F(GrpcCredentialsTest, ANewCertificateIsForNewConnections) {
  const auto before = Connect(address_, &ops_);
  EXPECT_EQ(NameOn(*before), "first");
  MakeDaemon("second");
  credentials_->Put(Contents());
  EXPECT_EQ(NameFor(&ops_), "second");
  EXPECT_EQ(NameOn(*before), "first");
}

TEST_F(GrpcCredentialsTest, AnotherTrustAdmitsOtherClients) {
  const test::TlsCert ops = test::MakeCert({"", "URI:spiffe://corp/ops"}, &strange_ca_);
  EXPECT_EQ(NameFor(&ops), "");
  EXPECT_EQ(NameFor(&ops_), "first");
  trusted_ = strange_ca_.certificate_pem;
  credentials_->Put(Contents());
  EXPECT_EQ(NameFor(&ops), "first");
  EXPECT_EQ(NameFor(&ops_), "");
}

// gRPC would use the part before the NUL, of a file that was checked whole.
TEST_F(GrpcCredentialsTest, ANulInAFileIsAnError) {
  EXPECT_TRUE(GrpcCredentials::Check(Contents()).ok());
  for (net::TlsFile net::TlsContents::*file :
       {&net::TlsContents::certificate, &net::TlsContents::key, &net::TlsContents::ca}) {
    net::TlsContents contents = Contents();
    (contents.*file).text += '\0';
    const auto status = GrpcCredentials::Check(contents);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().detail, HasSubstr((contents.*file).name + ": has a NUL"));
  }
}

}  // namespace
}  // namespace sluice::admin

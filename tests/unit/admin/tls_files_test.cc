// TlsFiles: handshakes get what the files hold now, or held when they were last good.
#include "admin/tls_files.h"

#include <gmock/gmock.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include "captured_log.h"
#include "tls_fixture.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class TlsFilesTest : public TlsFixture {
 protected:
  void SetUp() override {
    Security();
    auto files = TlsFiles::Open(Paths());
    ASSERT_TRUE(files.ok()) << files.error().detail;
    files_ = std::move(*files);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", files_->Credentials(), &port);
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

  std::unique_ptr<TlsFiles> files_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(TlsFilesTest, AClientNeedsACertificateOfTheRightAuthority) {
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

TEST_F(TlsFilesTest, NewFilesAreForNewConnections) {
  const auto before = Connect(address_, &ops_);
  EXPECT_EQ(NameOn(*before), "first");
  WriteDaemon("second");
  EXPECT_EQ(NameFor(&ops_), "first");  // nobody has looked yet
  files_->Refresh();
  EXPECT_EQ(NameFor(&ops_), "second");
  EXPECT_EQ(NameOn(*before), "first");
}

TEST_F(TlsFilesTest, WithAnotherTrustOthersComeIn) {
  const test::TlsCert ops = test::MakeCert({"", "URI:spiffe://corp/ops"}, &strange_ca_);
  EXPECT_EQ(NameFor(&ops), "");
  EXPECT_EQ(NameFor(&ops_), "first");
  Write("ca.pem", strange_ca_.certificate_pem);
  files_->Refresh();
  EXPECT_EQ(NameFor(&ops), "first");
  EXPECT_EQ(NameFor(&ops_), "");
}

TEST_F(TlsFilesTest, BadFilesKeepTheGoodOnesAndAreLoggedOnce) {
  CapturedLog log;
  const auto cert = daemon_.certificate_pem;
  const auto expect_kept = [&](const std::string& because) {
    files_->Refresh();
    EXPECT_THAT(log.Take(), testing::AllOf(HasSubstr("stays in use"), HasSubstr(because)));
    files_->Refresh();
    EXPECT_THAT(log.Take(), IsEmpty());
    EXPECT_EQ(NameFor(&ops_), "first");
  };
  const test::TlsCert other = test::MakeCert({"other", "IP:127.0.0.1"}, &daemon_ca_);
  Write("cert.pem", other.certificate_pem);  // the key is still the first one's
  expect_kept("is not the key of the first certificate");
  Write("cert.pem", cert.substr(0, cert.size() / 2));
  expect_kept("cert.pem");
  Write("cert.pem", "");
  expect_kept("cert.pem");
  Write("cert.pem", cert + '\0');
  expect_kept("NUL");
  Write("cert.pem", std::string(TlsFiles::kFileBytesMax + 1, '\n'));
  expect_kept("larger than 1 MiB");
  std::filesystem::remove(dir_ / "cert.pem");
  expect_kept("cannot be read");
  Write("cert.pem", cert);
  files_->Refresh();
  EXPECT_THAT(log.Take(), HasSubstr("good again"));
  files_->Refresh();
  EXPECT_THAT(log.Take(), IsEmpty());
  Write("cert.pem", other.certificate_pem);
  Write("key.pem", other.key_pem);
  files_->Refresh();
  EXPECT_THAT(log.Take(), HasSubstr("new connections"));
  EXPECT_EQ(NameFor(&ops_), "other");
}

TEST_F(TlsFilesTest, ListsWhatHandshakesGetAndWhyTheFilesAreNotIt) {
  const auto shown = [this](size_t i) {
    const CertificateView view = files_->List().at(i);
    return view.used_by + " " + view.purpose + " " + view.file + " " + view.subject;
  };
  ASSERT_EQ(files_->List().size(), 2u);
  EXPECT_EQ(shown(0), "admin own " + Paths().certificate + " CN=first");
  EXPECT_EQ(shown(1), "admin trusted " + Paths().client_ca + " CN=client ca");
  EXPECT_EQ(files_->List()[0].names, (std::vector<std::string>{"admin.test", "127.0.0.1"}));
  EXPECT_THAT(files_->List()[0].error, IsEmpty());
  Write("cert.pem", "no PEM");
  files_->Refresh();
  EXPECT_EQ(shown(0), "admin own " + Paths().certificate + " CN=first");
  for (const CertificateView& view : files_->List()) EXPECT_THAT(view.error, HasSubstr("cert.pem"));
  WriteDaemon("second");
  files_->Refresh();
  EXPECT_EQ(shown(0), "admin own " + Paths().certificate + " CN=second");
  EXPECT_THAT(files_->List()[0].error, IsEmpty());
}

TEST_F(TlsFilesTest, NothingOpensWithBadFiles) {
  TlsPaths paths = Paths();
  paths.key = dir_ / "none.pem";
  auto files = TlsFiles::Open(paths);
  ASSERT_FALSE(files.ok());
  EXPECT_THAT(files.error().detail, HasSubstr("none.pem: cannot be read"));
  Write("ca.pem", "not PEM");
  files = TlsFiles::Open(Paths());
  ASSERT_FALSE(files.ok());
  EXPECT_THAT(files.error().detail, HasSubstr("ca.pem"));
}

}  // namespace
}  // namespace sluice::admin

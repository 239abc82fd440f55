// Files of TLS change while calls run: new connections get the new ones, no call fails, and bad files change nothing.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "support/operator.h"
#include "support/process.h"
#include "support/tls_fixture.h"

namespace sluice::integration {
namespace {

using test::MakeCert;
using test::TlsCert;
using ::testing::HasSubstr;

class TlsReload : public Tls {
 protected:
  TlsReload() {
    StartBackend(backend_certificate);
    config.listener = {ListenerKeys()};
    config.cluster = {ClusterKeys()};
    StartProxy();
  }
  double Loads(const std::string& result) {
    return Metric("sluice_tls_file_loads_total", {"result=\"" + result + "\""});
  }
  double NotAfter() { return Metric("sluice_tls_certificate_not_after_seconds", {"purpose=\"own\""}); }
  admin::v1::ListCertificatesResponse Certificates() {
    grpc::ClientContext context;
    admin::v1::ListCertificatesResponse response;
    EXPECT_TRUE(proxy->admin().ListCertificates(&context, {}, &response).ok());
    return response;
  }
};

// Calls without pause over connections that are made anew all the time and over ones that stay, while certificates and
// authorities change by rename, in place and by a link that is turned.
TEST_F(TlsReload, UnderLoadNoCallFails) {
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0}, failures{0};
  std::string failure;
  std::mutex mutex;
  auto load = [&](bool anew) {
    auto stub = echo::v1::Echo::NewStub(Connect(proxy->target(), Credentials(ca)));
    while (!stop.load(std::memory_order_relaxed)) {
      if (anew) stub = echo::v1::Echo::NewStub(Connect(proxy->target(), Credentials(ca)));
      grpc::ClientContext context;
      echo::v1::EchoRequest request;
      const Reply reply = Call(stub.get(), Kind::kUnary, &context, request);
      calls.fetch_add(1, std::memory_order_relaxed);
      if (reply.status.ok()) continue;
      failures.fetch_add(1, std::memory_order_relaxed);
      std::lock_guard lock(mutex);
      failure = Describe(reply.status);
    }
  };
  std::vector<std::thread> threads;
  for (bool anew : {true, true, false}) threads.emplace_back(load, anew);
  std::vector<TlsCert> kept;
  for (int round = 1; round <= 3; ++round) {
    kept.push_back(
        MakeCert({.common_name = "proxy", .names = "DNS:localhost,IP:127.0.0.1", .until = 86400 + round * 1000}, &ca));
    const double before = Loads("ok");
    if (round == 2) {  // in place, as `cp` does
      files.Write("proxy.crt", kept.back().certificate_pem);
      files.Write("proxy.key", kept.back().key_pem);
    } else {
      Write("proxy", kept.back());
    }
    const double not_after = NotAfter();
    EXPECT_TRUE(WaitUntil([&] { return Loads("ok") > before; }));
    EXPECT_NE(NotAfter(), not_after);
  }
  const int so_far = calls.load(std::memory_order_relaxed);
  EXPECT_TRUE(WaitUntil([&] { return calls.load(std::memory_order_relaxed) > so_far + 20; }));
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0) << failure;
  EXPECT_EQ(Loads("failed"), 0);
}

TEST_F(TlsReload, NewConnectionsGetTheNewFilesAndOldOnesLiveOn) {
  auto old = echo::v1::Echo::NewStub(Connect(proxy->target(), Credentials(ca)));
  auto call = [](echo::v1::Echo::Stub& stub) {
    grpc::ClientContext context;
    return Call(&stub, Kind::kUnary, &context, {}).status;
  };
  ASSERT_TRUE(call(*old).ok());
  const TlsCert next = MakeCert({.common_name = "proxy", .names = "DNS:localhost,IP:127.0.0.1"}, &other_ca);
  Write("proxy", next);
  EXPECT_TRUE(WaitUntil([&] { return Loads("ok") >= 1; }));
  EXPECT_TRUE(CallOnce(Credentials(other_ca)).status.ok());
  EXPECT_FALSE(CallOnce(Credentials(ca)).status.ok());
  EXPECT_TRUE(call(*old).ok());
}

// As Kubernetes swaps a mounted secret: the names are links through a link to a directory, which is turned.
TEST_F(TlsReload, ALinkThatIsTurnedIsSeen) {
  namespace fs = std::filesystem;
  const TlsCert next = MakeCert({.common_name = "proxy", .names = "DNS:localhost,IP:127.0.0.1"}, &other_ca);
  const std::pair<const char*, const TlsCert*> directories[] = {{"one", &proxy_certificate}, {"two", &next}};
  for (const auto& [dir, certificate] : directories) {
    fs::create_directory(files.File(dir));
    files.Write(std::string(dir) + "/tls.crt", certificate->certificate_pem);
    files.Write(std::string(dir) + "/tls.key", certificate->key_pem);
  }
  fs::create_symlink("one", files.File("data"));
  for (const char* end : {".crt", ".key"}) {
    fs::remove(files.File("proxy") + end);
    fs::create_symlink(std::string("data/tls") + end, files.File("proxy") + end);
  }
  EXPECT_TRUE(WaitUntil([&] { return Loads("ok") >= 1; }));  // other files, the same certificate
  fs::create_symlink("two", files.File("turned"));
  fs::rename(files.File("turned"), files.File("data"));
  EXPECT_TRUE(WaitUntil([&] { return Loads("ok") >= 2; }));
  EXPECT_TRUE(CallOnce(Credentials(other_ca)).status.ok());
}

TEST_F(TlsReload, ABadFileKeepsTheFormerOneAndIsToldUntilItIsMended) {
  const TlsCert next = MakeCert({.common_name = "next", .names = "IP:127.0.0.1"}, &ca);
  files.Write("proxy.key", next.key_pem);  // not the key of the certificate, which stays
  EXPECT_TRUE(WaitUntil([&] { return Loads("failed") == 1; }));
  EXPECT_TRUE(CallOnce(Credentials(ca)).status.ok());
  ASSERT_GE(Certificates().certificates_size(), 2);
  EXPECT_EQ(Certificates().certificates(0).subject(), "CN=proxy");
  EXPECT_THAT(Certificates().certificates(0).error(),
              HasSubstr("proxy.key: is not the key of the first certificate in"));
  EXPECT_EQ(Certificates().certificates(1).used_by(), "cluster/echo");
  EXPECT_EQ(Certificates().certificates(1).error(), "");
  const Finished shown = Operator(*proxy).Ctl({"certs"});
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_THAT(shown.output, HasSubstr("new files are not in force: "));
  // A reload by hand says so, and changes nothing.
  const std::vector<std::string> errors = Operator(*proxy).Reload();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_THAT(errors[0], HasSubstr("TLS: " + files.File("proxy.key") + ": is not the key"));
  EXPECT_TRUE(CallOnce(Credentials(ca)).status.ok());
  files.Write("proxy.crt", next.certificate_pem);
  EXPECT_TRUE(WaitUntil([&] { return Loads("ok") == 1; }));
  EXPECT_EQ(Certificates().certificates(0).subject(), "CN=next");
  EXPECT_EQ(Certificates().certificates(0).error(), "");
  EXPECT_EQ(Loads("failed"), 1);  // told once
}

// Files of the configuration may be other ones, and TLS may come and go with a reload.
TEST_F(TlsReload, AReloadPutsInOtherFilesAndOtherOptions) {
  const TlsCert next = MakeCert({.common_name = "next", .names = "IP:127.0.0.1"}, &other_ca);
  Write("next", next);
  config.listener = {"tls: {certificate: " + files.File("next.crt") + ", key: " + files.File("next.key") + ClientCa() +
                     "}"};
  Operator(*proxy).ReloadWith(config);
  EXPECT_TRUE(CallOnce(Credentials(other_ca, &client)).status.ok());
  EXPECT_FALSE(CallOnce(Credentials(other_ca)).status.ok());
  config.listener = {};
  Operator(*proxy).ReloadWith(config);
  EXPECT_TRUE(CallOnce(nullptr).status.ok());
  EXPECT_EQ(Certificates().certificates_size(), 1);  // the cluster's authority
}

}  // namespace
}  // namespace sluice::integration

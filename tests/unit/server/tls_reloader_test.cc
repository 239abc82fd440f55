#include "server/tls_reloader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/support/temp_dir.h"
#include "server/server.h"
#include "support/captured_log.h"
#include "support/tls_certificates.h"

namespace sluice::server {
namespace {

using admin::CertificatePurpose;
using test::MakeCert;
using test::TlsCert;
using ::testing::HasSubstr;

class TlsReloaderTest : public ::testing::Test {
 public:
  TlsReloaderTest() {
    Write(first);
    dir.Write("ca.crt", ca.certificate_pem);
    config.listeners.resize(1);
    config.listeners[0].name = "in";
    config.listeners[0].tls.enabled = true;
    config.listeners[0].tls.certificate = dir.File("a.crt");
    config.listeners[0].tls.key = dir.File("a.key");
    config.clusters.resize(1);
    config.clusters[0].name = "users";
    config.clusters[0].tls.enabled = true;
    config.clusters[0].tls.ca = dir.File("ca.crt");
  }
  void Write(const TlsCert& certificate) {
    dir.Write("a.crt", certificate.certificate_pem);
    dir.Write("a.key", certificate.key_pem);
  }
  std::string Apply() {
    auto plan = reloader.Prepare(config);
    if (!plan.ok()) return plan.error().detail;
    reloader.Commit(std::move(*plan));
    return "";
  }
  void Poll(int times = 2) {
    for (int i = 0; i < times; ++i) reloader.Poll(now += std::chrono::seconds(1));
  }
  std::string Subject() { return config.listeners[0].tls_slot->context()->own().front().info.subject; }
  std::string Shown(size_t i) {
    const admin::CertificateView view = reloader.List().at(i);
    return view.used_by + (view.purpose == CertificatePurpose::kOwn ? " own " : " trusted ") + view.file + " " +
           view.subject;
  }
  double Loads(const std::string& result) {
    const std::string text = registry.RenderPrometheus(),
                      name = "sluice_tls_file_loads_total{result=\"" + result + "\"} ";
    return std::strtod(text.c_str() + text.find(name) + name.size(), nullptr);
  }

  integration::TempDir dir;
  base::TimePoint now{};
  metrics::Registry registry{1};
  TlsCert ca = MakeCert({.common_name = "ca", .authority = true});
  TlsCert ca_too = MakeCert({.common_name = "ca too", .authority = true});
  TlsCert first = MakeCert({.common_name = "first", .names = "DNS:a.example.com", .until = 2 * 86400 + 3600}, &ca);
  TlsCert second = MakeCert({.common_name = "second"}, &ca);
  config::Config config;
  TlsReloader reloader{registry};
};

TEST_F(TlsReloaderTest, GivesEachUserASlotWithItsContext) {
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(Subject(), "CN=first");
  EXPECT_EQ(config.clusters[0].tls_slot->context()->role(), net::TlsContext::Role::kClient);
  config.listeners.resize(2);  // one without TLS gets none
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(config.listeners[1].tls_slot, nullptr);
}

TEST_F(TlsReloaderTest, TheSameOptionsKeepTheirSlotAndOthersGetAnotherOne) {
  ASSERT_EQ(Apply(), "");
  const auto slot = config.listeners[0].tls_slot;
  const auto context = slot->context();
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(config.listeners[0].tls_slot, slot);
  EXPECT_EQ(slot->context(), context);  // sessions of a cluster go with the context: not for nothing
  config.listeners[0].tls.version_min = net::TlsVersion::k13;
  ASSERT_EQ(Apply(), "");
  EXPECT_NE(config.listeners[0].tls_slot, slot);
  EXPECT_EQ(slot->context(), context);  // what was published under the former options stays theirs
  // Clients resume under the new options as far as these let them: the ticket keys are the same.
  EXPECT_EQ(config.listeners[0].tls_slot->context()->tickets(), context->tickets());
}

TEST_F(TlsReloaderTest, AChangeIsReadWhenItHasSettled) {
  ASSERT_EQ(Apply(), "");
  Write(second);
  Poll(1);  // seen
  EXPECT_EQ(Subject(), "CN=first");
  Poll(1);  // the same still: read
  EXPECT_EQ(Subject(), "CN=second");
  EXPECT_EQ(Loads("ok"), 1);
  Poll(5);
  EXPECT_EQ(Loads("ok"), 1);
}

// Trap: the certificate is there and its key is still to come; read at once, that is an error for nothing.
TEST_F(TlsReloaderTest, FilesThatAreWrittenOneAfterTheOtherAreNoError) {
  ASSERT_EQ(Apply(), "");
  dir.Write("a.crt", second.certificate_pem);
  Poll(1);
  dir.Write("a.key", second.key_pem);
  Poll(1);
  EXPECT_EQ(Subject(), "CN=first");
  Poll(1);
  EXPECT_EQ(Subject(), "CN=second");
  EXPECT_EQ(Loads("failed"), 0);
}

TEST_F(TlsReloaderTest, BadFilesKeepTheFormerContextAndAreLoggedOnce) {
  ASSERT_EQ(Apply(), "");
  test::CapturedLog log;
  dir.Write("a.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  Poll(6);
  EXPECT_EQ(Subject(), "CN=first");
  EXPECT_EQ(Loads("failed"), 1);
  EXPECT_EQ(log.Take(), "error listener in: new TLS files cannot be used, the former ones stay in force: " +
                            reloader.List()[0].error + "\n");
  EXPECT_THAT(reloader.List()[0].error, HasSubstr("a.crt: has a certificate that cannot be read"));
  EXPECT_EQ(reloader.List()[0].subject, "CN=first");
  EXPECT_EQ(reloader.List()[1].error, "");  // the cluster's are well
  std::filesystem::remove(dir.File("a.crt"));
  Poll(6);
  EXPECT_EQ(Loads("failed"), 2);  // another change, another mistake
  EXPECT_THAT(reloader.List()[0].error, HasSubstr("a.crt: cannot be read: No such file"));
  EXPECT_THAT(log.Take(), HasSubstr("a.crt: cannot be read: No such file"));
  Write(second);
  Poll();
  EXPECT_EQ(log.Take(), "info listener in: new TLS files are in force\n");
  EXPECT_EQ(Subject(), "CN=second");
  EXPECT_EQ(reloader.List()[0].error, "");
}

// docs/operations.md: a reload fails as long as a file cannot be used, also where it has been read and refused before.
TEST_F(TlsReloaderTest, AReloadFailsWhileAFileIsBad) {
  ASSERT_EQ(Apply(), "");
  dir.Write("a.crt", "no PEM");
  Poll(4);
  ASSERT_EQ(Loads("failed"), 1);
  EXPECT_THAT(Apply(), HasSubstr("listener in: TLS: " + dir.File("a.crt")));
  EXPECT_EQ(Subject(), "CN=first");
}

TEST_F(TlsReloaderTest, TicketKeysChangeInTime) {
  ASSERT_EQ(Apply(), "");
  const auto* tickets = config.listeners[0].tls_slot->context()->tickets();
  const auto first = tickets->current().name;
  Poll(1);
  reloader.Poll(now += net::TlsTicketKeys::kLifetime - std::chrono::seconds(1));
  EXPECT_EQ(tickets->current().name, first);
  reloader.Poll(now += std::chrono::seconds(1));
  EXPECT_NE(tickets->current().name, first);
}

TEST_F(TlsReloaderTest, APlanThatIsNotCommittedChangesNothing) {
  ASSERT_EQ(Apply(), "");
  Write(second);
  config::Config wanted = config;
  auto plan = reloader.Prepare(wanted);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Subject(), "CN=first");
  reloader.Commit(std::move(*plan));
  EXPECT_EQ(Subject(), "CN=second");
  Poll(4);
  EXPECT_EQ(Loads("ok"), 1);  // it is not read once more
}

TEST_F(TlsReloaderTest, PrepareNamesTheUserTheFileAndTheReason) {
  dir.Write("a.key", second.key_pem);
  EXPECT_EQ(Apply(), "listener in: TLS: " + dir.File("a.key") + ": is not the key of the first certificate in " +
                         dir.File("a.crt"));
  Write(first);
  config.clusters[0].tls.ca = "/nowhere/ca.crt";
  EXPECT_EQ(Apply(), "cluster users: TLS: /nowhere/ca.crt: cannot be read: No such file or directory");
  EXPECT_TRUE(reloader.List().empty());
  // So does --check, and the start.
  config.clusters[0].policy = upstream::Policy::kRoundRobin;
  config.routes.resize(1);
  config.routes[0].cluster = "users";
  auto checked = Server::Check(config);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().detail, HasSubstr("cluster users: TLS: /nowhere/ca.crt"));
  config.clusters[0].tls.ca = dir.File("ca.crt");
  EXPECT_TRUE(Server::Check(config).ok());
}

// The slip of a rotation that copies the wrong pair: handshakes go on with the good one.
TEST_F(TlsReloaderTest, AnExpiredPairDoesNotTakeThePlaceOfAGoodOne) {
  const TlsCert expired = MakeCert({.common_name = "old", .until = -60}, &ca);
  ASSERT_EQ(Apply(), "");
  Write(expired);
  Poll(3);
  EXPECT_EQ(Subject(), "CN=first");
  EXPECT_EQ(Loads("failed"), 1);
  EXPECT_THAT(reloader.List()[0].error, HasSubstr("a.crt: the certificate has expired at 20"));
  EXPECT_THAT(Apply(), HasSubstr("listener in: TLS: " + dir.File("a.crt") + ": the certificate has expired"));
  EXPECT_EQ(Subject(), "CN=first") << "nor by a reload";
  Write(second);
  Poll(3);
  EXPECT_EQ(Subject(), "CN=second");
}

// At the start there is no better one, and other listeners can serve. --check says so.
TEST_F(TlsReloaderTest, AnExpiredPairIsUsedAtTheStartAndTold) {
  Write(MakeCert({.common_name = "old", .until = -60}, &ca));
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(Subject(), "CN=old");
  ASSERT_EQ(reloader.Expired().size(), 1u);
  EXPECT_THAT(reloader.Expired()[0], HasSubstr("listener in: TLS: " + dir.File("a.crt") + ": the certificate has exp"));
  const auto checked = Server::Check(config);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().detail, HasSubstr("a.crt: the certificate has expired"));
  Write(MakeCert({.common_name = "older", .until = -3600}, &ca));
  Poll(3);
  EXPECT_EQ(Subject(), "CN=older") << "it is no worse";
  Write(first);
  Poll(3);
  EXPECT_TRUE(reloader.Expired().empty());
  EXPECT_TRUE(Server::Check(config).ok());
}

TEST_F(TlsReloaderTest, ListsWhatIsInUseWithItsEnd) {
  config.clusters[0].tls.certificate = dir.File("a.crt");
  config.clusters[0].tls.key = dir.File("a.key");
  config.clusters.resize(2);
  config.clusters[1].name = "public";
  config.clusters[1].tls.enabled = true;
  config.clusters[1].tls.ca = net::kSystemCa;
  ASSERT_EQ(Apply(), "");
  const auto views = reloader.List();
  ASSERT_EQ(views.size(), 4u);
  EXPECT_EQ(views[0].used_by, "listener/in");
  EXPECT_EQ(views[0].purpose, CertificatePurpose::kOwn);
  EXPECT_EQ(views[0].file, dir.File("a.crt"));
  EXPECT_EQ(views[0].names, std::vector<std::string>{"a.example.com"});
  EXPECT_EQ(views[0].issuer, "CN=ca");
  EXPECT_EQ(views[0].days_left, 2);  // whole ones
  EXPECT_EQ(Shown(1), "cluster/users own " + dir.File("a.crt") + " CN=first");
  EXPECT_EQ(Shown(2), "cluster/users trusted " + dir.File("ca.crt") + " CN=ca");
  EXPECT_EQ(views[3].used_by + " " + views[3].file + " " + views[3].subject, "cluster/public system ");
  EXPECT_EQ(registry.RenderPrometheus().find("file=\"system\""), std::string::npos);  // its end is unknown
  EXPECT_THAT(registry.RenderPrometheus(),
              HasSubstr("sluice_tls_certificate_not_after_seconds{file=\"" + dir.File("a.crt") +
                        "\",purpose=\"own\",used_by=\"listener/in\"} " + std::to_string(views[0].not_after)));
}

// The admin RPC's files: read and watched as those of a listener, listed behind the others; a reload of the
// configuration leaves them alone, as other names of them need a restart.
class AdminTlsReloaderTest : public TlsReloaderTest {
 public:
  AdminTlsReloaderTest() {
    WriteAdmin(daemon);
    dir.Write("clients.crt", ca_too.certificate_pem);
  }
  void WriteAdmin(const TlsCert& certificate) {
    dir.Write("admin.crt", certificate.certificate_pem);
    dir.Write("admin.key", certificate.key_pem);
  }
  std::string Add() {
    auto added = reloader.AddAdmin({dir.File("admin.crt"), dir.File("admin.key"), dir.File("clients.crt")});
    return added ? "" : added.error().detail;
  }

  TlsCert daemon = MakeCert({.common_name = "daemon"}, &ca);
};

TEST_F(AdminTlsReloaderTest, IsListedBehindTheOthersAndInTheMetric) {
  ASSERT_EQ(Add(), "");
  ASSERT_EQ(Apply(), "");
  ASSERT_EQ(reloader.List().size(), 4u);
  EXPECT_EQ(Shown(2), "admin own " + dir.File("admin.crt") + " CN=daemon");
  EXPECT_EQ(Shown(3), "admin trusted " + dir.File("clients.crt") + " CN=ca too");
  EXPECT_THAT(registry.RenderPrometheus(),
              HasSubstr("sluice_tls_certificate_not_after_seconds{file=\"" + dir.File("admin.crt") +
                        "\",purpose=\"own\",used_by=\"admin\"} " + std::to_string(reloader.List()[2].not_after)));
}

TEST_F(AdminTlsReloaderTest, AChangeIsReadWhenItHasSettled) {
  ASSERT_EQ(Add(), "");
  ASSERT_EQ(Apply(), "");
  WriteAdmin(second);
  Poll(1);
  EXPECT_THAT(Shown(2), HasSubstr("CN=daemon"));
  ASSERT_EQ(Apply(), "");  // a reload forgets nothing about them
  Poll(1);
  EXPECT_THAT(Shown(2), HasSubstr("CN=second"));
  EXPECT_EQ(Loads("ok"), 1);
}

TEST_F(AdminTlsReloaderTest, BadFilesKeepTheFormerOnesAndFailNoReload) {
  ASSERT_EQ(Add(), "");
  ASSERT_EQ(Apply(), "");
  const auto expect_kept = [&](const std::string& because) {
    const double failed = Loads("failed");
    test::CapturedLog log;
    Poll(4);
    EXPECT_EQ(log.Take(), "error admin: new TLS files cannot be used, the former ones stay in force: " +
                              reloader.List()[2].error + "\n");
    EXPECT_EQ(Loads("failed"), failed + 1) << because;
    EXPECT_THAT(Shown(2), HasSubstr("CN=daemon"));
    EXPECT_THAT(reloader.List()[2].error, HasSubstr(because));
    EXPECT_EQ(reloader.List()[3].error, reloader.List()[2].error) << "they are read as one";
    EXPECT_EQ(reloader.List()[0].error, "");
    EXPECT_EQ(Apply(), "");
  };
  dir.Write("admin.crt", second.certificate_pem);  // the key is still the former one's
  expect_kept("admin.key: is not the key of the first certificate");
  dir.Write("admin.crt", daemon.certificate_pem.substr(0, daemon.certificate_pem.size() / 2));
  expect_kept("admin.crt");
  dir.Write("admin.crt", "");
  expect_kept("admin.crt");
  dir.Write("admin.crt", daemon.certificate_pem + '\0');
  expect_kept("NUL");
  std::filesystem::remove(dir.File("admin.crt"));
  expect_kept("admin.crt: cannot be read");
  WriteAdmin(daemon);
  Poll();
  EXPECT_EQ(reloader.List()[2].error, "");
}

TEST_F(AdminTlsReloaderTest, NothingStartsWithBadFiles) {
  dir.Write("clients.crt", "not PEM");
  EXPECT_THAT(Add(), HasSubstr("admin: TLS: " + dir.File("clients.crt")));
  dir.Write("clients.crt", ca_too.certificate_pem + '\0');
  EXPECT_THAT(Add(), HasSubstr("clients.crt: has a NUL in it"));
  std::filesystem::remove(dir.File("admin.key"));
  EXPECT_EQ(Add(), "admin: TLS: " + dir.File("admin.key") + ": cannot be read: No such file or directory");
  auto system = reloader.AddAdmin({dir.File("admin.crt"), dir.File("admin.crt"), "system"});
  ASSERT_FALSE(system.ok());
  EXPECT_TRUE(reloader.List().empty());
}

// Of a bundle the metric has the authority that ends first.
TEST_F(TlsReloaderTest, TheMetricOfATrustedFileIsItsFirstEnd) {
  const TlsCert soon = MakeCert({.common_name = "soon", .authority = true, .until = 3600}, nullptr);
  dir.Write("ca.crt", ca.certificate_pem + soon.certificate_pem + ca_too.certificate_pem);
  ASSERT_EQ(Apply(), "");
  const auto views = reloader.List();
  ASSERT_EQ(views.size(), 4u);
  EXPECT_LT(views[2].not_after, views[1].not_after);
  EXPECT_THAT(registry.RenderPrometheus(),
              HasSubstr("purpose=\"trusted\",used_by=\"cluster/users\"} " + std::to_string(views[2].not_after) + "\n"));
}

TEST_F(TlsReloaderTest, ACertificateThatIsOverIsShownAsThat) {
  Write(MakeCert({.common_name = "old", .from = -10 * 86400, .until = -86400 - 60}, &ca));
  ASSERT_EQ(Apply(), "");  // a clock may be wrong: no reason not to start
  EXPECT_EQ(reloader.List()[0].days_left, -2);
}

}  // namespace
}  // namespace sluice::server

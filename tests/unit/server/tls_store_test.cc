#include "server/tls_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/support/temp_dir.h"
#include "server/server.h"
#include "support/tls_certificates.h"

namespace sluice::server {
namespace {

using test::MakeCert;
using test::TlsCert;
using ::testing::HasSubstr;

class TlsStoreTest : public ::testing::Test {
 public:
  TlsStoreTest() {
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
    auto plan = store.Prepare(config);
    if (!plan.ok()) return plan.error().detail;
    store.Commit(std::move(*plan));
    return "";
  }
  void Poll(int times = 2) {
    for (int i = 0; i < times; ++i) store.Poll(now += std::chrono::seconds(1));
  }
  std::string Subject() { return config.listeners[0].tls_slot->context()->certificate().subject; }
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
  TlsStore store{registry};
};

TEST_F(TlsStoreTest, GivesEachUserASlotWithItsContext) {
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(Subject(), "CN=first");
  EXPECT_EQ(config.clusters[0].tls_slot->context()->role(), net::TlsContext::Role::kClient);
  config.listeners.resize(2);  // one without TLS gets none
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(config.listeners[1].tls_slot, nullptr);
}

TEST_F(TlsStoreTest, TheSameOptionsKeepTheirSlotAndOthersGetAnotherOne) {
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

TEST_F(TlsStoreTest, AChangeIsReadWhenItHasSettled) {
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
TEST_F(TlsStoreTest, FilesThatAreWrittenOneAfterTheOtherAreNoError) {
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

TEST_F(TlsStoreTest, WhatIsBadKeepsTheFormerOneAndIsToldOnce) {
  ASSERT_EQ(Apply(), "");
  dir.Write("a.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  Poll(6);
  EXPECT_EQ(Subject(), "CN=first");
  EXPECT_EQ(Loads("failed"), 1);
  EXPECT_THAT(store.List()[0].error, HasSubstr("a.crt: has a certificate that cannot be read"));
  EXPECT_EQ(store.List()[0].subject, "CN=first");
  EXPECT_EQ(store.List()[1].error, "");  // the cluster's are well
  std::filesystem::remove(dir.File("a.crt"));
  Poll(6);
  EXPECT_EQ(Loads("failed"), 2);  // another change, another mistake
  EXPECT_THAT(store.List()[0].error, HasSubstr("a.crt: cannot be read: No such file"));
  Write(second);
  Poll();
  EXPECT_EQ(Subject(), "CN=second");
  EXPECT_EQ(store.List()[0].error, "");
}

// docs/operations.md: a reload fails as long as a file cannot be used, also where it has been read and refused before.
TEST_F(TlsStoreTest, AReloadFailsWhileAFileIsBad) {
  ASSERT_EQ(Apply(), "");
  dir.Write("a.crt", "no PEM");
  Poll(4);
  ASSERT_EQ(Loads("failed"), 1);
  EXPECT_THAT(Apply(), HasSubstr("listener in: TLS: " + dir.File("a.crt")));
  EXPECT_EQ(Subject(), "CN=first");
}

TEST_F(TlsStoreTest, TicketKeysChangeInTime) {
  ASSERT_EQ(Apply(), "");
  const auto* tickets = config.listeners[0].tls_slot->context()->tickets();
  const auto first = tickets->current().name;
  Poll(1);
  store.Poll(now += net::TlsTicketKeys::kLifetime - std::chrono::seconds(1));
  EXPECT_EQ(tickets->current().name, first);
  store.Poll(now += std::chrono::seconds(1));
  EXPECT_NE(tickets->current().name, first);
}

TEST_F(TlsStoreTest, APlanThatIsNotCommittedChangesNothing) {
  ASSERT_EQ(Apply(), "");
  Write(second);
  config::Config wanted = config;
  auto plan = store.Prepare(wanted);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Subject(), "CN=first");
  store.Commit(std::move(*plan));
  EXPECT_EQ(Subject(), "CN=second");
  Poll(4);
  EXPECT_EQ(Loads("ok"), 1);  // it is not read once more
}

TEST_F(TlsStoreTest, PrepareNamesTheUserTheFileAndTheReason) {
  dir.Write("a.key", second.key_pem);
  EXPECT_EQ(Apply(), "listener in: TLS: " + dir.File("a.key") + ": is not the key of the first certificate in " +
                         dir.File("a.crt"));
  Write(first);
  config.clusters[0].tls.ca = "/nowhere/ca.crt";
  EXPECT_EQ(Apply(), "cluster users: TLS: /nowhere/ca.crt: cannot be read: No such file or directory");
  EXPECT_TRUE(store.List().empty());
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

TEST_F(TlsStoreTest, ListsWhatIsInUseWithItsEnd) {
  config.clusters[0].tls.certificate = dir.File("a.crt");
  config.clusters[0].tls.key = dir.File("a.key");
  config.clusters.resize(2);
  config.clusters[1].name = "public";
  config.clusters[1].tls.enabled = true;
  config.clusters[1].tls.ca = net::kSystemCa;
  ASSERT_EQ(Apply(), "");
  const auto views = store.List();
  ASSERT_EQ(views.size(), 4u);
  EXPECT_EQ(views[0].used_by, "listener/in");
  EXPECT_EQ(views[0].purpose, "own");
  EXPECT_EQ(views[0].file, dir.File("a.crt"));
  EXPECT_EQ(views[0].names, std::vector<std::string>{"a.example.com"});
  EXPECT_EQ(views[0].issuer, "CN=ca");
  EXPECT_EQ(views[0].days_left, 2);  // whole ones
  EXPECT_EQ(views[1].used_by + " " + views[1].purpose + " " + views[1].subject, "cluster/users own CN=first");
  EXPECT_EQ(views[2].used_by + " " + views[2].purpose + " " + views[2].subject, "cluster/users trusted CN=ca");
  EXPECT_EQ(views[3].used_by + " " + views[3].file + " " + views[3].subject, "cluster/public system ");
  EXPECT_EQ(registry.RenderPrometheus().find("file=\"system\""), std::string::npos);  // its end is nobody's to say
  EXPECT_THAT(registry.RenderPrometheus(),
              HasSubstr("sluice_tls_certificate_not_after_seconds{file=\"" + dir.File("a.crt") +
                        "\",purpose=\"own\",used_by=\"listener/in\"} " + std::to_string(views[0].not_after)));
}

TEST_F(TlsStoreTest, WhatOthersKeepIsListedBehindItAndInTheMetric) {
  ASSERT_EQ(Apply(), "");
  admin::CertificateView other;
  other.used_by = "admin";
  other.purpose = "own";
  other.file = "admin.crt";
  other.subject = "CN=daemon";
  other.not_after = 1234567890;
  store.SetOthers([&] { return std::vector{other}; });
  ASSERT_EQ(store.List().size(), 3u);
  EXPECT_EQ(store.List()[2].subject, "CN=daemon");
  const std::string line =
      "sluice_tls_certificate_not_after_seconds{file=\"admin.crt\",purpose=\"own\",used_by=\"admin\"} 1234567890\n";
  EXPECT_THAT(registry.RenderPrometheus(), HasSubstr(line));
  store.SetOthers(nullptr);
  EXPECT_EQ(store.List().size(), 2u);
}

// Of a bundle the metric has the authority that ends first.
TEST_F(TlsStoreTest, TheMetricOfATrustedFileIsItsFirstEnd) {
  const TlsCert soon = MakeCert({.common_name = "soon", .authority = true, .until = 3600}, nullptr);
  dir.Write("ca.crt", ca.certificate_pem + soon.certificate_pem + ca_too.certificate_pem);
  ASSERT_EQ(Apply(), "");
  const auto views = store.List();
  ASSERT_EQ(views.size(), 4u);
  EXPECT_LT(views[2].not_after, views[1].not_after);
  EXPECT_THAT(registry.RenderPrometheus(),
              HasSubstr("purpose=\"trusted\",used_by=\"cluster/users\"} " + std::to_string(views[2].not_after) + "\n"));
}

TEST_F(TlsStoreTest, ACertificateThatIsOverIsShownAsThat) {
  Write(MakeCert({.common_name = "old", .from = -10 * 86400, .until = -86400 - 60}, &ca));
  ASSERT_EQ(Apply(), "");  // a clock may be wrong: no reason not to start
  EXPECT_EQ(store.List()[0].days_left, -2);
}

}  // namespace
}  // namespace sluice::server

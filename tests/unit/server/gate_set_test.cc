// GateSet: gates and what is known of tokens stay over a reload, and key files are followed.
#include "server/gate_set.h"

#include <gtest/gtest.h>

#include <string>

#include "config/config.h"
#include "integration/support/temp_dir.h"
#include "support/captured_log.h"
#include "support/jwt_maker.h"

namespace sluice::server {
namespace {

using proxy::JwtFault;
using test::JwtMaker;

class GateSetTest : public ::testing::Test {
 public:
  GateSetTest() {
    WriteKeys({first.Jwk()});
    proxy::JwtProviderOptions provider;
    provider.name = "p";
    provider.issuer = "me";
    provider.jwks_file = dir.File("jwks.json");
    provider.forward_claims = {{"sub", "x-user"}, {"tenant", "x-tenant"}};
    config.jwt = {provider};
    config.routes.resize(2);
    config.routes[0].name = "guarded";
    config.routes[0].jwt.provider = "p";
    config.routes[1].name = "open";
  }
  void WriteKeys(const std::vector<std::string>& keys) { dir.Write("jwks.json", JwtMaker::Jwks(keys)); }
  // Its error, or nothing.
  std::string Apply() {
    auto plan = set.Prepare(config);
    if (!plan.ok()) return plan.error().detail;
    table = plan->table;
    set.Commit(std::move(*plan));
    return "";
  }
  const proxy::JwtGate& Gate() { return static_cast<const proxy::JwtGate&>(*table.Of("guarded")->at(0)); }
  JwtFault Check(const JwtMaker& key) {
    const std::string token = key.Token("{\"iss\":\"me\",\"exp\":2000}");
    const proxy::VerifiedJwt* jwt = nullptr;
    proxy::FailedChecks failed;
    return Gate().provider()->Check(token, 0, {}, failed, &jwt);
  }
  // Two looks that see the same: a change has settled.
  void Poll() {
    set.Poll();
    set.Poll();
  }
  std::string Loads(const std::string& result) {
    const std::string text = registry.RenderPrometheus(metrics::Show::kAlways);
    const std::string name = "sluice_jwt_key_file_loads_total{result=\"" + result + "\"} ";
    const size_t at = text.find(name);
    return at == text.npos ? "none" : text.substr(at + name.size(), 1);
  }

  integration::TempDir dir;
  const JwtMaker first{JwtMaker::Kind::kEd, "first"}, second{JwtMaker::Kind::kEd, "second"};
  config::Config config;
  metrics::Registry registry{1};
  GateSet set{registry, 1, [] { return int64_t{1000}; }};
  GateTable table;
};

TEST_F(GateSetTest, OnlyRoutesThatAskForOneHaveAGate) {
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(table.Of("open"), nullptr);
  ASSERT_NE(table.Of("guarded"), nullptr);
  ASSERT_EQ(table.Of("guarded")->size(), 1u);
  EXPECT_TRUE(Gate().required());
  EXPECT_EQ(Check(first), JwtFault::kNone);
  EXPECT_EQ(Check(second), JwtFault::kUnknownKey);
}

TEST_F(GateSetTest, AGateWhoseOptionsAreTheSameIsTheSameObject) {
  ASSERT_EQ(Apply(), "");
  const auto before = table.Of("guarded");
  config.routes[0].timeout = std::chrono::milliseconds(7);
  config.routes[1].name = "renamed";
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(table.Of("guarded"), before);
  config.routes[0].jwt.required = false;
  ASSERT_EQ(Apply(), "");
  EXPECT_NE(table.Of("guarded"), before);
  EXPECT_EQ(Gate().provider(), static_cast<const proxy::JwtGate&>(*before->at(0)).provider());
  config.jwt[0].leeway = std::chrono::milliseconds(0);
  ASSERT_EQ(Apply(), "");
  EXPECT_NE(Gate().provider(), static_cast<const proxy::JwtGate&>(*before->at(0)).provider());
}

TEST_F(GateSetTest, AKeyThatIsTakenOutOfTheFileIsGoodForNothing) {
  ASSERT_EQ(Apply(), "");
  ASSERT_EQ(Check(first), JwtFault::kNone);
  WriteKeys({second.Jwk(), "{\"kty\":\"oct\",\"k\":\"AAAA\"}"});
  Poll();
  EXPECT_EQ(Check(first), JwtFault::kUnknownKey);
  EXPECT_EQ(Check(second), JwtFault::kNone);
  EXPECT_EQ(Loads("ok"), "1");
  const std::string text = registry.RenderPrometheus();
  EXPECT_NE(text.find("sluice_jwt_keys{provider=\"p\",state=\"usable\"} 1"), text.npos) << text;
  EXPECT_NE(text.find("sluice_jwt_keys{provider=\"p\",state=\"skipped\"} 1"), text.npos) << text;
  Poll();
  EXPECT_EQ(Loads("ok"), "1") << "a file that has not changed is not read";
}

TEST_F(GateSetTest, AReloadReadsTheFileAtOnce) {
  ASSERT_EQ(Apply(), "");
  ASSERT_EQ(Check(first), JwtFault::kNone);
  const auto before = table.Of("guarded");
  WriteKeys({second.Jwk(), "{}"});
  ASSERT_EQ(Apply(), "");
  EXPECT_EQ(Check(first), JwtFault::kUnknownKey);
  EXPECT_EQ(table.Of("guarded"), before) << "the gate is the same, its keys are not";
}

TEST_F(GateSetTest, AFileThatCannotBeUsedLeavesTheFormerKeysInForce) {
  ASSERT_EQ(Apply(), "");
  dir.Write("jwks.json", "{\"keys\":");
  test::CapturedLog log;
  Poll();
  EXPECT_EQ(Check(first), JwtFault::kNone);
  EXPECT_EQ(Loads("failed"), "1");
  const std::string lines = log.Take();
  EXPECT_NE(lines.find("jwt p: " + dir.File("jwks.json") +
                       ": is not JSON, or has a member twice; the former keys stay in force"),
            std::string::npos)
      << lines;
  EXPECT_EQ(Apply(), "jwt p: " + dir.File("jwks.json") + ": is not JSON, or has a member twice");
  EXPECT_EQ(Check(first), JwtFault::kNone);
  ASSERT_EQ(::unlink(dir.File("jwks.json").c_str()), 0);
  Poll();
  EXPECT_EQ(Check(first), JwtFault::kNone);
  EXPECT_EQ(Loads("failed"), "2");
  WriteKeys({second.Jwk()});
  Poll();
  EXPECT_EQ(Check(second), JwtFault::kNone);
  EXPECT_EQ(Check(first), JwtFault::kUnknownKey);
}

TEST_F(GateSetTest, AStartNeedsTheFile) {
  config.jwt[0].jwks_file = dir.File("none.json");
  EXPECT_NE(Apply().find("jwt p: " + dir.File("none.json") + ": cannot be read"), std::string::npos);
}

TEST_F(GateSetTest, TheCachesKeyHasTheCredentialWhereAllThatEndpointsLearnVaries) {
  const auto keyed = [&] {
    EXPECT_EQ(Apply(), "");
    return table.key_has_credential.contains("guarded");
  };
  config.routes[0].cache.vary = {"x-tenant", "x-user"};
  EXPECT_FALSE(keyed()) << "they learn all of the token";
  config.jwt[0].forward_token = false;
  EXPECT_TRUE(keyed());
  config.routes[0].cache.vary = {"authorization", "x-user"};
  EXPECT_FALSE(keyed());
  config.jwt[0].forward_claims.clear();
  EXPECT_FALSE(keyed());
}

}  // namespace
}  // namespace sluice::server

#include "proxy/identity/jwt_verifier.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "proxy/identity/jwt_table.h"
#include "proxy/identity/strict_json.h"
#include "support/jwt_maker.h"

namespace sluice::proxy {
namespace {

using test::Base64Url;
using test::JwtMaker;
using Kind = JwtMaker::Kind;
using Algorithm = JwtProviderOptions::Algorithm;

constexpr int64_t kNow = 1'700'000'000;

class JwtVerifierTest : public ::testing::Test {
 public:
  // A key of 2048 bits takes a while to make: one for all tests.
  static const JwtMaker& Rsa() {
    static const JwtMaker kKey(Kind::kRsa, "rsa");
    return kKey;
  }
  JwtVerifierTest() {
    options.issuer = "https://issuer.example";
    options.audiences = {"here", "there"};
    keys = *KeySet::Parse(JwtMaker::Jwks({Rsa().Jwk(), ec.Jwk(), ed.Jwk()}));
  }
  // Good claims, with these in the place of, or beside, those of the same name.
  static std::string Claims(const std::vector<std::pair<std::string, std::string>>& other = {}) {
    std::vector<std::pair<std::string, std::string>> members = {
        {"iss", "\"https://issuer.example\""}, {"aud", "\"here\""}, {"exp", std::to_string(kNow + 60)}};
    for (const auto& [name, value] : other) {
      bool found = false;
      for (auto& member : members) {
        if (member.first == name) {
          member.second = value;
          found = true;
        }
      }
      if (!found) members.emplace_back(name, value);
    }
    std::string out = "{";
    for (const auto& [name, value] : members) {
      if (!value.empty()) out += (out.size() == 1 ? "\"" : ",\"") + name + "\":" + value;
    }
    return out + "}";
  }
  JwtFault Verify(const std::string& token) { return VerifyJwt(token, options, *keys, kNow, &jwt); }
  JwtFault With(const std::string& name, const std::string& value) { return Verify(ed.Token(Claims({{name, value}}))); }
  // What is handed on of the claim c.
  std::string Forwarded(const std::string& value) {
    options.forward_claims = {{"c", "x-c"}};
    EXPECT_EQ(With("c", value), JwtFault::kNone) << value;
    return jwt.fields.empty() ? "(left out)" : jwt.fields[0].value;
  }

  const JwtMaker ec{Kind::kEc, "ec"}, ed{Kind::kEd, "ed"};
  JwtProviderOptions options;
  std::shared_ptr<const KeySet> keys;
  VerifiedJwt jwt;
};

// As issuers make them that list a permission or a client in each member.
TEST_F(JwtVerifierTest, TakesClaimsThatAreWideOrDeepAndSaysWhereThatEnds) {
  options.token_bytes_max = 64 * 1024;
  std::string wide = "{";
  for (int i = 0; i < 300; ++i) wide += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  EXPECT_EQ(With("clients", wide + "}"), JwtFault::kNone);
  const auto deep = [](size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(With("policy", deep(kJsonDepthMax - 1)), JwtFault::kNone);
  EXPECT_EQ(With("policy", deep(kJsonDepthMax)), JwtFault::kClaimsTooMany);
  EXPECT_EQ(TextOf(JwtFault::kClaimsTooMany),
            "the JWT's claims are above 8192 values or 32 levels, which is all that is read");
  EXPECT_EQ(With("twice", "{\"a\":1,\"b\":2,\"a\":3}"), JwtFault::kClaims);
}

TEST_F(JwtVerifierTest, TakesGoodTokensOfEachAlgorithm) {
  EXPECT_EQ(Verify(Rsa().Token(Claims())), JwtFault::kNone);
  EXPECT_EQ(Verify(ec.Token(Claims())), JwtFault::kNone);
  EXPECT_EQ(Verify(ed.Token(Claims())), JwtFault::kNone);
  EXPECT_EQ(Verify(ed.Token("{\"alg\":\"EdDSA\"}", Claims())), JwtFault::kNone) << "without kid each fitting key";
  EXPECT_EQ(jwt.valid_until, kNow + 60 + 30);
  options.algorithms = Algorithm::kEs256;
  EXPECT_EQ(Verify(ed.Token(Claims())), JwtFault::kAlgorithm);
  EXPECT_EQ(Verify(ec.Token(Claims())), JwtFault::kNone);
}

TEST_F(JwtVerifierTest, TakesNoAlgorithmThatProvesNothing) {
  for (const char* none : {"none", "None", "NONE", "nOnE", "none ", ""}) {
    const std::string header = "{\"alg\":\"" + std::string(none) + "\",\"kid\":\"rsa\"}";
    const std::string input = Base64Url(header) + "." + Base64Url(Claims());
    EXPECT_EQ(Verify(input + "."), JwtFault::kAlgorithm) << none;
    EXPECT_EQ(Verify(input), JwtFault::kMalformed) << none;
    EXPECT_EQ(Verify(Rsa().Token(header, Claims())), JwtFault::kAlgorithm) << none;
  }
  for (const std::string& secret : {Rsa().PublicPem(), Rsa().PublicDer(), std::string()}) {
    for (const char* name : {"HS256", "hs256", "HS384", "HS512"}) {
      const std::string header = "{\"alg\":\"" + std::string(name) + "\",\"kid\":\"rsa\"}";
      EXPECT_EQ(Verify(JwtMaker::HmacToken(header, Claims(), secret)), JwtFault::kAlgorithm) << name;
    }
    // The MAC in the place of a signature.
    EXPECT_EQ(Verify(JwtMaker::HmacToken("{\"alg\":\"RS256\",\"kid\":\"rsa\"}", Claims(), secret)),
              JwtFault::kSignature);
  }
  for (const char* name : {"RS512", "PS256", "rs256", "ES384", "Ed25519", "ES256K"})
    EXPECT_EQ(Verify(Rsa().Token("{\"alg\":\"" + std::string(name) + "\"}", Claims())), JwtFault::kAlgorithm) << name;
}

TEST_F(JwtVerifierTest, AKeyIsUsedForItsOwnAlgorithmOnly) {
  const JwtMaker* all[] = {&Rsa(), &ec, &ed};
  for (const JwtMaker* signer : all) {
    for (const JwtMaker* named : all) {
      if (signer == named) continue;
      // The key of one, the algorithm of another.
      const std::string header = "{\"alg\":\"" + named->algorithm() + "\",\"kid\":\"" + signer->kid() + "\"}";
      EXPECT_EQ(Verify(signer->Token(header, Claims())), JwtFault::kAlgorithm) << header;
      EXPECT_EQ(Verify(signer->Token(named->Header(), Claims())), JwtFault::kSignature) << named->Header();
    }
  }
}

TEST_F(JwtVerifierTest, TheHeaderIsReadStrictly) {
  const auto with = [&](const std::string& header) { return Verify(ed.Token(header, Claims())); };
  EXPECT_EQ(with(R"({"alg":"EdDSA","kid":"nope"})"), JwtFault::kUnknownKey);
  EXPECT_EQ(with(R"({"alg":"EdDSA","kid":1})"), JwtFault::kMalformed);
  EXPECT_EQ(with(R"({"kid":"ed"})"), JwtFault::kMalformed);
  EXPECT_EQ(with(R"({"alg":["EdDSA"]})"), JwtFault::kMalformed);
  EXPECT_EQ(with(R"({"alg":"EdDSA","alg":"EdDSA"})"), JwtFault::kMalformed);
  EXPECT_EQ(with(R"(["alg","EdDSA"])"), JwtFault::kMalformed);
  EXPECT_EQ(with("nonsense"), JwtFault::kMalformed);
  EXPECT_EQ(with(R"({"alg":"EdDSA","crit":["exp"],"exp":1})"), JwtFault::kCritical);
  EXPECT_EQ(with(R"({"alg":"EdDSA","crit":[]})"), JwtFault::kCritical);
  EXPECT_EQ(with(R"({"alg":"EdDSA","b64":false,"crit":["b64"]})"), JwtFault::kCritical);
  // Keys that the token brings along are not looked at.
  const JwtMaker mine(Kind::kEd, "mine");
  EXPECT_EQ(Verify(mine.Token(R"({"alg":"EdDSA","jwk":)" + mine.Jwk() + "}", Claims())), JwtFault::kSignature);
}

TEST_F(JwtVerifierTest, TheSignatureIsOverTheseBytesAndInOneForm) {
  for (const JwtMaker* key : {&Rsa(), &ec, &ed}) {
    const std::string good = key->Token(Claims());
    const size_t dot = good.rfind('.');
    const std::string input = good.substr(0, dot), signature = good.substr(dot + 1);
    ASSERT_EQ(Verify(good), JwtFault::kNone);
    const std::string other = Base64Url(key->Header()) + "." + Base64Url(Claims({{"sub", "\"root\""}}));
    EXPECT_EQ(Verify(other + "." + signature), JwtFault::kSignature);
    EXPECT_EQ(Verify(input + "."), JwtFault::kSignature);
    // At a length that whole bytes have.
    EXPECT_EQ(Verify(input + "." + signature.substr(0, (signature.size() - 1) / 4 * 4 - 4)), JwtFault::kSignature);
    EXPECT_EQ(Verify(input + "." + Base64Url(std::string(64, '\0'))), JwtFault::kSignature);
    for (const std::string& wrong :
         {good + "=", good + "==", good + " ", " " + good, good + "\n", good + ".", good + "." + signature,
          input + ".+" + signature.substr(1), good + "," + good, good + " " + good, std::string("a"), std::string("."),
          std::string(".."), std::string("..."), std::string()})
      EXPECT_EQ(Verify(wrong), JwtFault::kMalformed) << wrong;
  }
  const std::string input = Base64Url(ec.Header()) + "." + Base64Url(Claims());
  EXPECT_EQ(Verify(input + "." + Base64Url(ec.Sign(input))), JwtFault::kSignature) << "DER";
}

TEST_F(JwtVerifierTest, ClaimsAreNeededAndOfTheirKind) {
  EXPECT_EQ(With("iss", ""), JwtFault::kIssuer);
  EXPECT_EQ(With("iss", "\"https://issuer.example/\""), JwtFault::kIssuer);
  EXPECT_EQ(With("iss", "[\"https://issuer.example\"]"), JwtFault::kIssuer);
  EXPECT_EQ(With("aud", ""), JwtFault::kAudience);
  EXPECT_EQ(With("aud", "\"elsewhere\""), JwtFault::kAudience);
  EXPECT_EQ(With("aud", "{\"x\":\"here\"}"), JwtFault::kAudience);
  EXPECT_EQ(With("aud", "[\"elsewhere\",\"there\"]"), JwtFault::kNone);
  options.audiences.clear();
  EXPECT_EQ(With("aud", ""), JwtFault::kNone);
  EXPECT_EQ(Verify(ed.Token("[]")), JwtFault::kClaims);
  EXPECT_EQ(Verify(ed.Token("{\"exp\":1,\"exp\":2}")), JwtFault::kClaims);
  EXPECT_EQ(With("exp", ""), JwtFault::kClaims);
  for (const char* wrong : {"\"1700000060\"", "-1", "1e300", "null", "[1700000060]"}) {
    EXPECT_EQ(With("exp", wrong), JwtFault::kClaims) << wrong;
    EXPECT_EQ(With("nbf", wrong), JwtFault::kClaims) << wrong;
    EXPECT_EQ(With("iat", wrong), JwtFault::kClaims) << wrong;
  }
}

TEST_F(JwtVerifierTest, DatesHaveALeeway) {
  EXPECT_EQ(With("exp", std::to_string(kNow - 29)), JwtFault::kNone);
  EXPECT_EQ(With("exp", std::to_string(kNow - 30)), JwtFault::kExpired);
  EXPECT_EQ(With("exp", std::to_string(kNow - 29) + ".75"), JwtFault::kNone);
  for (const char* name : {"nbf", "iat"}) {
    EXPECT_EQ(With(name, std::to_string(kNow + 30)), JwtFault::kNone);
    EXPECT_EQ(With(name, std::to_string(kNow + 31)), JwtFault::kNotYetValid);
  }
  options.leeway = std::chrono::milliseconds(0);
  EXPECT_EQ(With("exp", std::to_string(kNow)), JwtFault::kExpired);
  EXPECT_EQ(With("exp", std::to_string(kNow + 1)), JwtFault::kNone);
}

TEST_F(JwtVerifierTest, AHugeTokenIsRefusedUnread) {
  options.token_bytes_max = 600;
  EXPECT_EQ(With("pad", "\"" + std::string(600, 'x') + "\""), JwtFault::kTooLarge);
  EXPECT_EQ(Verify(ed.Token(Claims())), JwtFault::kNone);
}

TEST_F(JwtVerifierTest, ClaimsAreHandedOnWhereMetadataCanSayThem) {
  EXPECT_EQ(Forwarded("\"a b\""), "a b");
  EXPECT_EQ(Forwarded("17"), "17");
  EXPECT_EQ(Forwarded("1.50"), "1.50");
  EXPECT_EQ(Forwarded("true"), "true");
  EXPECT_EQ(Forwarded("[\"a\",\"b\"]"), "a,b");
  EXPECT_EQ(Forwarded("\"" + std::string(1024, 'x') + "\""), std::string(1024, 'x'));
  for (const std::string& wrong :
       {std::string("null"), std::string("{\"a\":1}"), std::string("[]"), std::string("[1]"), std::string("[\"a,b\"]"),
        std::string("[\"\"]"), std::string("\"\""), std::string("\" a\""), std::string("\"a \""),
        std::string("\"a\\r\\nx-admin: 1\""), std::string("\"\\u0000\""), std::string("\"\\u00e9\""),
        "\"" + std::string(1025, 'x') + "\""})
    EXPECT_EQ(Forwarded(wrong), "(left out)") << wrong;
}

TEST(JwtTable, KnowsWhatWasPutInByItsWholeTokenAndGeneration) {
  JwtTable table(8, 17);
  EXPECT_EQ(table.Find("token", 1), nullptr);
  VerifiedJwt jwt;
  jwt.valid_until = 7;
  table.Put("token", 1, jwt);
  ASSERT_NE(table.Find("token", 1), nullptr);
  EXPECT_EQ(table.Find("token", 1)->valid_until, 7);
  EXPECT_EQ(table.Find("tokens", 1), nullptr);
  // The bytes that are hashed are the same.
  const std::string tail(100, 's');
  table.Put("a" + tail, 1, jwt);
  EXPECT_EQ(table.Find("b" + tail, 1), nullptr);
  EXPECT_NE(table.Find("a" + tail, 1), nullptr);
  EXPECT_EQ(table.Find("token", 2), nullptr);
  EXPECT_EQ(table.size(), 0u) << "those of other keys are gone";
}

TEST(JwtTable, IsBoundedAndKeepsWhatIsUsed) {
  JwtTable table(4, 17);
  for (int i = 0; i < 1000; ++i) {
    table.Put(std::to_string(i), 1, {});
    if (i > 0) {
      EXPECT_NE(table.Find("0", 1), nullptr) << i;
    }
  }
  EXPECT_EQ(table.size(), 4u);
}

}  // namespace
}  // namespace sluice::proxy

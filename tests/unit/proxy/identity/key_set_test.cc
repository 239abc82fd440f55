#include "proxy/identity/key_set.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "proxy/identity/base64url.h"
#include "support/jwt_maker.h"

namespace sluice::proxy {
namespace {

using test::JwtMaker;
using Kind = JwtMaker::Kind;
using Algorithm = JwtProviderOptions::Algorithm;

std::shared_ptr<const KeySet> SetOf(const std::vector<std::string>& keys) {
  auto parsed = KeySet::Parse(JwtMaker::Jwks(keys));
  EXPECT_TRUE(parsed.ok()) << parsed.error().detail;
  return parsed.ok() ? *parsed : nullptr;
}

constexpr char kPayload[] =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

TEST(KeySet, VerifiesTheRsaExampleOfRfc7515) {  // A.2
  const auto keys = SetOf({R"({"kty":"RSA","e":"AQAB","n":")"
                           "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm"
                           "4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5"
                           "rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGh"
                           "yxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\"}"});
  const auto signature = DecodeBase64Url(
      "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t"
      "1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12j"
      "zDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ"
      "Ge77Rw");
  const std::string input = std::string("eyJhbGciOiJSUzI1NiJ9.") + kPayload;
  EXPECT_EQ(keys->Verify(Algorithm::kRs256, std::nullopt, input, *signature), JwtFault::kNone);
  EXPECT_EQ(keys->Verify(Algorithm::kRs256, std::nullopt, input + "A", *signature), JwtFault::kSignature);
  EXPECT_EQ(keys->Verify(Algorithm::kEs256, std::nullopt, input, *signature), JwtFault::kUnknownKey);
}

TEST(KeySet, VerifiesTheEcExampleOfRfc7515) {  // A.3
  const auto keys = SetOf({R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
                           R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})"});
  const auto signature =
      DecodeBase64Url("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
  const std::string input = std::string("eyJhbGciOiJFUzI1NiJ9.") + kPayload;
  EXPECT_EQ(keys->Verify(Algorithm::kEs256, std::nullopt, input, *signature), JwtFault::kNone);
  EXPECT_EQ(keys->Verify(Algorithm::kEs256, std::nullopt, input + "A", *signature), JwtFault::kSignature);
}

TEST(KeySet, VerifiesTheEdExampleOfRfc8037) {  // A.4
  const auto keys = SetOf({R"({"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})"});
  const auto signature =
      DecodeBase64Url("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
  const std::string input = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, std::nullopt, input, *signature), JwtFault::kNone);
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, std::nullopt, input + "A", *signature), JwtFault::kSignature);
}

TEST(KeySet, AKidChoosesAmongKeysAndNeverAnotherAlgorithm) {
  const JwtMaker one(Kind::kEd, "one"), two(Kind::kEd, "two"), ec(Kind::kEc, "ec");
  const auto keys = SetOf({one.Jwk(), two.Jwk(), ec.Jwk()});
  const std::string by_two = two.Sign("input");
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, "two", "input", by_two), JwtFault::kNone);
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, std::nullopt, "input", by_two), JwtFault::kNone);
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, "one", "input", by_two), JwtFault::kSignature);
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, "three", "input", by_two), JwtFault::kUnknownKey);
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, "ec", "input", by_two), JwtFault::kAlgorithm);
  EXPECT_EQ(keys->Verify(Algorithm::kEs256, "two", "input", by_two), JwtFault::kAlgorithm);
}

// A bad token costs a worker one signature for each key that is tried.
TEST(KeySet, WithoutAKidFourKeysOfTheAlgorithmAreTried) {
  std::deque<JwtMaker> makers;
  std::vector<std::string> jwks;
  for (int i = 0; i < 8; ++i) makers.emplace_back(i % 2 == 0 ? Kind::kEd : Kind::kEc, "k" + std::to_string(i));
  for (const JwtMaker& maker : makers) jwks.push_back(maker.Jwk());
  const JwtMaker fifth(Kind::kEd, "fifth");
  jwks.push_back(fifth.Jwk());
  const auto keys = SetOf(jwks);
  EXPECT_EQ(keys->untried(), 1u);
  uint32_t tried = 0;
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, std::nullopt, "input", makers[6].Sign("input"), &tried), JwtFault::kNone);
  EXPECT_EQ(std::exchange(tried, 0), 4u);
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, std::nullopt, "input", fifth.Sign("input"), &tried), JwtFault::kSignature);
  EXPECT_EQ(std::exchange(tried, 0), 4u);
  EXPECT_EQ(keys->Verify(Algorithm::kEdDsa, "fifth", "input", fifth.Sign("input"), &tried), JwtFault::kNone);
  EXPECT_EQ(tried, 1u);
}

TEST(KeySet, SkipsAndCountsKeysThatCannotBeUsed) {
  const JwtMaker rsa(Kind::kRsa, "r"), small(Kind::kRsa, "s", 1024), ec(Kind::kEc, "e"), ed(Kind::kEd, "d");
  const std::vector<std::string> wrong = {
      R"({"kty":"oct","k":"c2VjcmV0","alg":"HS256"})",
      small.Jwk(),
      rsa.Jwk(R"(,"use":"enc")"),
      rsa.Jwk(R"(,"key_ops":["sign"])"),
      rsa.Jwk(R"(,"key_ops":"verify")"),
      rsa.Jwk(R"(,"alg":"RS512")"),
      rsa.Jwk(R"(,"alg":"ES256")"),
      rsa.Jwk(R"(,"alg":1)"),
      ec.Jwk(R"(,"alg":"EdDSA")"),
      R"({"kty":"RSA","n":"AQAB"})",
      R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"AAAA"})",
      // Not a point of the curve.
      R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
      R"("y":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"})",
      R"({"kty":"EC","crv":"P-521","x":"AA","y":"AA"})",
      R"({"kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})",
      R"({"kty":"OKP","crv":"Ed25519","x":"AAAA"})",
      R"({"kty":"RSA","kid":7})",
      R"(17)",
  };
  std::vector<std::string> all = wrong;
  all.push_back(rsa.Jwk(R"(,"use":"sig","alg":"RS256","key_ops":["sign","verify"])"));
  all.push_back(ec.Jwk());
  all.push_back(ed.Jwk());
  const auto keys = SetOf(all);
  EXPECT_EQ(keys->size(), 3u);
  EXPECT_EQ(keys->skipped(), wrong.size());
}

TEST(KeySet, RefusesFilesThatAreNoJwkSetOrTooLarge) {
  const auto why = [](std::string_view text) {
    const auto parsed = KeySet::Parse(text);
    return parsed.ok() ? "taken" : parsed.error().detail;
  };
  EXPECT_EQ(why("{}"), "has no array \"keys\": it is no JWK Set");
  EXPECT_EQ(why("[]"), "has no array \"keys\": it is no JWK Set");
  EXPECT_EQ(why("{\"keys\":{}}"), "has no array \"keys\": it is no JWK Set");
  EXPECT_EQ(why("{\"keys\":[]"), "is not JSON, or has a member twice");
  EXPECT_EQ(why("{\"keys\":[],\"keys\":[]}"), "is not JSON, or has a member twice");
  EXPECT_EQ(why(JwtMaker::Jwks(std::vector<std::string>(65, "{}"))), "has more than 64 keys");
  EXPECT_EQ(why(std::string(kJwksBytesMax + 1, ' ')), "is larger than 256 KiB");
  EXPECT_EQ(why("{\"keys\":[]}"), "taken");  // that is how each key is revoked
}

}  // namespace
}  // namespace sluice::proxy

// A token and a key file, as strangers send and operators write them. The input's first byte says which. Never an
// exception, a hang or a read beyond the text; a key set is within its bounds; a token is refused unless it is signed,
// and then each field that is handed on can stand in metadata, and the token's dates are kept.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "proxy/identity/base64url.h"
#include "proxy/identity/jwt_verifier.h"
#include "proxy/identity/key_set.h"
#include "proxy/identity/strict_json.h"

namespace sluice::proxy {
namespace {

constexpr int64_t kNow = 1'700'000'000;

// The key of RFC 8037 A.1: its private part is known, so the corpus has good tokens.
const KeySet& Keys() {
  static const auto kKeys =
      *KeySet::Parse(R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},)"
                     R"({"kty":"EC","crv":"P-256","kid":"ec","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
                     R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})");
  return *kKeys;
}

JwtProviderOptions Options() {
  JwtProviderOptions options;
  options.issuer = "me";
  options.forward_claims = {{"sub", "x-sub"}, {"a", "x-a"}};
  return options;
}

void CheckToken(std::string_view token) {
  static const JwtProviderOptions kOptions = Options();
  VerifiedJwt jwt;
  const JwtFault fault = VerifyJwt(token, kOptions, Keys(), kNow, &jwt);
  SLUICE_CHECK(static_cast<size_t>(fault) < kJwtFaults);
  if (fault != JwtFault::kNone) {
    SLUICE_CHECK(jwt.fields.empty() && !TextOf(fault).empty());
    return;
  }
  SLUICE_CHECK(jwt.At(kNow) == JwtFault::kNone);
  for (const VerifiedJwt::Field& field : jwt.fields) {
    SLUICE_CHECK(field.claim < kOptions.forward_claims.size() && !field.value.empty());
    SLUICE_CHECK(field.value.size() <= kClaimBytesMax);
    for (const char c : field.value) SLUICE_CHECK(c >= ' ' && c <= '~');
  }
}

void CheckKeys(std::string_view text) {
  const auto keys = KeySet::Parse(text);
  if (!keys.ok()) {
    SLUICE_CHECK(!keys.error().detail.empty());
    return;
  }
  SLUICE_CHECK((*keys)->size() + (*keys)->skipped() <= kJwksKeysMax);
  (void)(*keys)->Verify(JwtProviderOptions::kEs256, std::nullopt, "input", std::string(64, 'x'));
  (void)(*keys)->Verify(JwtProviderOptions::kEdDsa, "kid", "input", std::string(64, 'x'));
}

// What a member's name and a value's nesting may be is bounded, however it is written.
void CheckJson(std::string_view text) {
  const auto json = ParseStrictJson(text);
  if (!json) return;
  SLUICE_CHECK(json->names.size() <= kJsonValuesMax && json->items.size() <= kJsonValuesMax);
  for (size_t i = 0; i < json->names.size(); ++i) SLUICE_CHECK(json->Find(json->names[i]) == &json->items[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      CheckToken(rest);
      break;
    case 1:
      CheckKeys(rest);
      break;
    case 2:
      CheckJson(rest);
      break;
    case 3:
      if (const auto bytes = DecodeBase64Url(rest)) SLUICE_CHECK(bytes->size() == rest.size() * 3 / 4);
      break;
  }
  return 0;
}

}  // namespace sluice::proxy

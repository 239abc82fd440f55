#include "proxy/identity/jwt_verifier.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "proxy/identity/base64url.h"
#include "proxy/identity/strict_json.h"

namespace sluice::proxy {
namespace {

using Algorithm = JwtProviderOptions::Algorithm;
using Kind = JsonValue::Kind;

// RFC 7515 3.1: three parts. Views into the token.
struct Parts {
  std::string_view header, claims, signature, signed_part;
};

std::optional<Parts> Split(std::string_view token) {
  const size_t first = token.find('.');
  if (first == token.npos) return std::nullopt;
  const size_t second = token.find('.', first + 1);
  if (second == token.npos || token.find('.', second + 1) != token.npos) return std::nullopt;
  return Parts{token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1),
               token.substr(0, second)};
}

std::optional<JsonValue> ObjectOf(std::string_view part, bool* beyond = nullptr) {
  const auto text = DecodeBase64Url(part);
  if (!text) return std::nullopt;
  auto json = ParseStrictJson(*text, beyond);
  if (!json || json->kind != Kind::kObject) return std::nullopt;
  return json;
}

// Names are compared as they are: RFC 7515 4.1.1.
std::optional<Algorithm> AlgorithmOf(std::string_view name) {
  if (name == "RS256") return Algorithm::kRs256;
  if (name == "ES256") return Algorithm::kEs256;
  if (name == "EdDSA") return Algorithm::kEdDsa;
  return std::nullopt;
}

// RFC 7519 2, NumericDate: a number of seconds, which may have a fraction. 2^53 is far beyond each date.
std::optional<int64_t> DateOf(const JsonValue& value) {
  constexpr double kLatest = 9007199254740992;
  if (value.kind != Kind::kInteger && value.kind != Kind::kDecimal) return std::nullopt;
  if (!(value.number >= 0 && value.number <= kLatest)) return std::nullopt;
  return static_cast<int64_t>(std::floor(value.number));
}

// exp is needed, nbf and iat may be missing. False: one of them is no date.
bool ReadTimes(const JsonValue& claims, int64_t leeway, VerifiedJwt* out) {
  const JsonValue* const exp = claims.Find("exp");
  const auto until = exp != nullptr ? DateOf(*exp) : std::nullopt;
  if (!until) return false;
  out->valid_until = *until + leeway;
  out->valid_from = INT64_MIN;
  for (const std::string_view name : {"nbf", "iat"}) {
    const JsonValue* const claim = claims.Find(name);
    if (claim == nullptr) continue;
    const auto from = DateOf(*claim);
    if (!from) return false;
    out->valid_from = std::max(out->valid_from, *from - leeway);
  }
  return true;
}

JwtFault CheckIssuer(const JsonValue& claims, const JwtProviderOptions& options) {
  const JsonValue* const issuer = claims.Find("iss");
  return issuer != nullptr && issuer->is_string() && issuer->text == options.issuer ? JwtFault::kNone
                                                                                    : JwtFault::kIssuer;
}

// RFC 7519 4.1.3: a string, or an array of strings.
JwtFault CheckAudience(const JsonValue& claims, const JwtProviderOptions& options) {
  if (options.audiences.empty()) return JwtFault::kNone;
  const JsonValue* const audience = claims.Find("aud");
  if (audience == nullptr) return JwtFault::kAudience;
  const auto wanted = [&](const JsonValue& value) {
    return value.is_string() &&
           std::find(options.audiences.begin(), options.audiences.end(), value.text) != options.audiences.end();
  };
  if (wanted(*audience)) return JwtFault::kNone;
  const bool listed =
      audience->kind == Kind::kArray && std::any_of(audience->items.begin(), audience->items.end(), wanted);
  return listed ? JwtFault::kNone : JwtFault::kAudience;
}

// A value of metadata (gRPC over HTTP/2, "ASCII-Value"); without spaces at the ends, which recipients cut off.
bool FitsMetadata(std::string_view text) {
  if (text.empty() || text.size() > kClaimBytesMax || text.front() == ' ' || text.back() == ' ') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// None: it is not handed on. An array whose strings have commas would read as another array.
std::optional<std::string> TextOf(const JsonValue& claim) {
  std::string out;
  switch (claim.kind) {
    case Kind::kString:
    case Kind::kInteger:
    case Kind::kDecimal:
      out = claim.text;
      break;
    case Kind::kBool:
      out = claim.truth ? "true" : "false";
      break;
    case Kind::kArray:
      for (const JsonValue& item : claim.items) {
        if (!item.is_string() || item.text.empty() || item.text.find(',') != item.text.npos) return std::nullopt;
        if (!out.empty()) out += ',';
        out += item.text;
      }
      break;
    case Kind::kNull:
    case Kind::kObject:
      return std::nullopt;
  }
  if (!FitsMetadata(out)) return std::nullopt;
  return out;
}

}  // namespace

JwtFault VerifyJwt(std::string_view token, const JwtProviderOptions& options, const KeySet& keys, int64_t wall,
                   VerifiedJwt* out, uint32_t* tried) {
  if (token.size() > options.token_bytes_max) return JwtFault::kTooLarge;
  const auto parts = Split(token);
  if (!parts) return JwtFault::kMalformed;
  const auto header = ObjectOf(parts->header);
  const auto signature = DecodeBase64Url(parts->signature);
  if (!header || !signature) return JwtFault::kMalformed;
  if (header->Find("crit") != nullptr) return JwtFault::kCritical;

  const JsonValue* const name = header->Find("alg");
  if (name == nullptr || !name->is_string()) return JwtFault::kMalformed;
  const auto algorithm = AlgorithmOf(name->text);
  if (!algorithm || (options.algorithms & *algorithm) == 0) return JwtFault::kAlgorithm;
  const JsonValue* const kid = header->Find("kid");
  if (kid != nullptr && !kid->is_string()) return JwtFault::kMalformed;
  const JwtFault signing = keys.Verify(*algorithm, kid == nullptr ? std::nullopt : std::optional(kid->text),
                                       parts->signed_part, *signature, tried);
  if (signing != JwtFault::kNone) return signing;

  bool beyond = false;
  const auto claims = ObjectOf(parts->claims, &beyond);
  if (!claims) return beyond ? JwtFault::kClaimsTooMany : JwtFault::kClaims;
  VerifiedJwt verified;
  if (!ReadTimes(*claims, std::chrono::duration_cast<std::chrono::seconds>(options.leeway).count(), &verified))
    return JwtFault::kClaims;
  if (const JwtFault fault = CheckIssuer(*claims, options); fault != JwtFault::kNone) return fault;
  if (const JwtFault fault = CheckAudience(*claims, options); fault != JwtFault::kNone) return fault;
  if (const JwtFault fault = verified.At(wall); fault != JwtFault::kNone) return fault;
  for (uint32_t i = 0; i < options.forward_claims.size(); ++i) {
    const JsonValue* const claim = claims->Find(options.forward_claims[i].claim);
    if (claim == nullptr) continue;
    if (auto text = TextOf(*claim)) verified.fields.push_back({i, std::move(*text)});
  }
  *out = std::move(verified);
  return JwtFault::kNone;
}

}  // namespace sluice::proxy

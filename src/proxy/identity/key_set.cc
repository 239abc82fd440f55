#include "proxy/identity/key_set.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <vector>

#include "proxy/identity/base64url.h"
#include "proxy/identity/strict_json.h"

namespace sluice::proxy {
namespace {

using Algorithm = JwtProviderOptions::Algorithm;

template <auto Free>
struct Freer {
  void operator()(auto* object) const { Free(object); }
};
using Bignum = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using Pkey = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using PkeyContext = std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX_free>>;
using ParamBuilder = std::unique_ptr<OSSL_PARAM_BLD, Freer<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freer<OSSL_PARAM_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using EcdsaSignature = std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG_free>>;

constexpr size_t kP256Bytes = 32;  // of a coordinate, and of r and s
constexpr size_t kEd25519KeyBytes = 32;
constexpr size_t kEd25519SignatureBytes = 64;

// What OpenSSL notes of a failure stays in a queue of the thread, where the code of TLS would find it.
class ErrorScope {
 public:
  ErrorScope() = default;
  ~ErrorScope() { ERR_clear_error(); }
  ErrorScope(const ErrorScope&) = delete;
  ErrorScope& operator=(const ErrorScope&) = delete;
};

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::optional<std::string> Member(const JsonValue& key, std::string_view name) {
  const JsonValue* value = key.Find(name);
  return value != nullptr && value->is_string() ? DecodeBase64Url(value->text) : std::nullopt;
}

Pkey FromParams(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* made = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  Pkey key(made);
  const PkeyContext check(EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  return check != nullptr && EVP_PKEY_public_check(check.get()) == 1 ? std::move(key) : nullptr;
}

// RFC 7518 6.3.1.
Pkey RsaKey(const JsonValue& key) {
  const auto modulus = Member(key, "n"), exponent = Member(key, "e");
  if (!modulus || !exponent || modulus->size() > kRsaBitsMax / 8 || exponent->empty() || exponent->size() > 4) {
    return nullptr;
  }
  const Bignum n(BN_bin2bn(Bytes(*modulus), static_cast<int>(modulus->size()), nullptr));
  const Bignum e(BN_bin2bn(Bytes(*exponent), static_cast<int>(exponent->size()), nullptr));
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (n == nullptr || e == nullptr || builder == nullptr || BN_num_bits(n.get()) < kRsaBitsMin || !BN_is_odd(e.get()) ||
      BN_is_one(e.get()) || OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
    return nullptr;
  }
  return FromParams("RSA", builder.get());
}

// RFC 7518 6.2.1: coordinates are not shortened.
Pkey EcKey(const JsonValue& key) {
  const auto x = Member(key, "x"), y = Member(key, "y");
  if (!x || !y || x->size() != kP256Bytes || y->size() != kP256Bytes) return nullptr;
  std::string point("\x04");  // uncompressed, SEC 1 2.3.3
  point += *x;
  point += *y;
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1) {
    return nullptr;
  }
  return FromParams("EC", builder.get());
}

// RFC 8037 2.
Pkey EdKey(const JsonValue& key) {
  const auto x = Member(key, "x");
  if (!x || x->size() != kEd25519KeyBytes) return nullptr;
  return Pkey(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(*x), x->size()));
}

struct Key {
  Algorithm algorithm = Algorithm::kRs256;
  std::optional<std::string> kid;
  Pkey pkey;
};

// `use` and `key_ops`, where they are there (RFC 7517 4.2, 4.3).
bool ForSignatures(const JsonValue& key) {
  const JsonValue* const use = key.Find("use");
  if (use != nullptr && (!use->is_string() || use->text != "sig")) return false;
  const JsonValue* const operations = key.Find("key_ops");
  if (operations == nullptr) return true;
  return operations->kind == JsonValue::Kind::kArray &&
         std::any_of(operations->items.begin(), operations->items.end(),
                     [](const JsonValue& operation) { return operation.is_string() && operation.text == "verify"; });
}

// A key without pkey is of no use.
Key ReadKey(const JsonValue& json) {
  Key out;
  const JsonValue* const type = json.Find("kty");
  const JsonValue* const curve = json.Find("crv");
  const JsonValue* const kid = json.Find("kid");
  if (type == nullptr || !type->is_string() || (kid != nullptr && !kid->is_string()) || !ForSignatures(json))
    return out;
  if (kid != nullptr) out.kid = kid->text;
  const auto has_curve = [&](std::string_view name) { return curve != nullptr && curve->text == name; };
  std::string_view name;
  Pkey pkey;
  if (type->text == "RSA") {
    out.algorithm = Algorithm::kRs256;
    name = "RS256";
    pkey = RsaKey(json);
  } else if (type->text == "EC" && has_curve("P-256")) {
    out.algorithm = Algorithm::kEs256;
    name = "ES256";
    pkey = EcKey(json);
  } else if (type->text == "OKP" && has_curve("Ed25519")) {
    out.algorithm = Algorithm::kEdDsa;
    name = "EdDSA";
    pkey = EdKey(json);
  }
  const JsonValue* const algorithm = json.Find("alg");
  if (algorithm != nullptr && (!algorithm->is_string() || algorithm->text != name)) return out;
  out.pkey = std::move(pkey);
  return out;
}

// RFC 7518 3.4: r and s, 32 bytes each; OpenSSL wants them in DER.
std::optional<std::string> DerOf(std::string_view signature) {
  if (signature.size() != 2 * kP256Bytes) return std::nullopt;
  const EcdsaSignature both(ECDSA_SIG_new());
  Bignum r(BN_bin2bn(Bytes(signature), kP256Bytes, nullptr));
  Bignum s(BN_bin2bn(Bytes(signature) + kP256Bytes, kP256Bytes, nullptr));
  if (both == nullptr || r == nullptr || s == nullptr) return std::nullopt;
  if (ECDSA_SIG_set0(both.get(), r.get(), s.get()) != 1) return std::nullopt;
  r.release();
  s.release();
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string out(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

bool MadeBy(const Key& key, std::string_view input, std::string_view signature) {
  std::optional<std::string> der;
  switch (key.algorithm) {
    case Algorithm::kRs256:
      // RFC 8017 8.2.2: as long as the modulus.
      if (signature.size() != static_cast<size_t>(EVP_PKEY_get_size(key.pkey.get()))) return false;
      break;
    case Algorithm::kEs256:
      der = DerOf(signature);
      if (!der) return false;
      signature = *der;
      break;
    case Algorithm::kEdDsa:
      if (signature.size() != kEd25519SignatureBytes) return false;
      break;
    case Algorithm::kAll:
      return false;
  }
  const DigestContext context(EVP_MD_CTX_new());
  const EVP_MD* const digest = key.algorithm == Algorithm::kEdDsa ? nullptr : EVP_sha256();
  return context != nullptr && EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key.pkey.get()) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(input), input.size()) == 1;
}

base::Error Invalid(std::string detail) {
  return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(detail));
}

}  // namespace

struct KeySet::Impl {
  std::vector<Key> keys;
  size_t skipped = 0;
};

KeySet::KeySet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KeySet::~KeySet() = default;

size_t KeySet::size() const { return impl_->keys.size(); }
size_t KeySet::skipped() const { return impl_->skipped; }

size_t KeySet::untried() const {
  size_t untried = 0;
  for (const Algorithm algorithm : {Algorithm::kRs256, Algorithm::kEs256, Algorithm::kEdDsa}) {
    const auto keys = std::ranges::count(impl_->keys, algorithm, &Key::algorithm);
    untried += static_cast<size_t>(std::max<ptrdiff_t>(keys - static_cast<ptrdiff_t>(kJwksTriedMax), 0));
  }
  return untried;
}

base::Result<std::shared_ptr<const KeySet>> KeySet::Parse(std::string_view jwks) {
  const ErrorScope scope;
  if (jwks.size() > kJwksBytesMax) return Invalid("is larger than 256 KiB");
  const std::optional<JsonValue> json = ParseStrictJson(jwks);
  if (!json) return Invalid("is not JSON, or has a member twice");
  const JsonValue* const keys = json->Find("keys");
  if (keys == nullptr || keys->kind != JsonValue::Kind::kArray)
    return Invalid("has no array \"keys\": it is no JWK Set");
  if (keys->items.size() > kJwksKeysMax) return Invalid("has more than 64 keys");
  auto impl = std::make_unique<Impl>();
  for (const JsonValue& item : keys->items) {
    Key key = ReadKey(item);
    if (key.pkey == nullptr)
      ++impl->skipped;
    else
      impl->keys.push_back(std::move(key));
  }
  return std::shared_ptr<const KeySet>(new KeySet(std::move(impl)));
}

JwtFault KeySet::Verify(Algorithm algorithm, const std::optional<std::string>& kid, std::string_view input,
                        std::string_view signature, uint32_t* tried) const {
  const ErrorScope scope;
  JwtFault fault = JwtFault::kUnknownKey;
  size_t checks = 0;
  for (const Key& key : impl_->keys) {
    if (kid && key.kid != kid) continue;
    if (key.algorithm != algorithm) {
      if (kid && fault == JwtFault::kUnknownKey) fault = JwtFault::kAlgorithm;
      continue;
    }
    if (++checks > kJwksTriedMax) break;  // also of keys that share one name
    if (tried != nullptr) ++*tried;
    if (MadeBy(key, input, signature)) return JwtFault::kNone;
    fault = JwtFault::kSignature;
  }
  return fault;
}

}  // namespace sluice::proxy

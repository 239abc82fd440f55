// JwtMaker: a key made in the test, its JWK, and tokens signed with it; also tokens that no honest issuer makes.
#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

inline std::string Base64Url(std::string_view bytes, std::string_view last_two = "-_") {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  const auto put = [&](uint32_t value) { out += value < 62 ? kAlphabet[value] : last_two[value - 62]; };
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    for (have += 8; have >= 6; have -= 6) put(bits >> (have - 6) & 63);
  }
  if (have > 0) put(bits << (6 - have) & 63);
  return out;
}

class JwtMaker {
 public:
  enum class Kind { kRsa, kEc, kEd };
  JwtMaker(Kind kind, std::string kid, unsigned rsa_bits = 2048)
      : kind_(kind),
        kid_(std::move(kid)),
        key_(kind == Kind::kRsa  ? EVP_RSA_gen(rsa_bits)
             : kind == Kind::kEc ? EVP_EC_gen("P-256")
                                 : EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")) {}
  ~JwtMaker() { EVP_PKEY_free(key_); }
  JwtMaker(const JwtMaker&) = delete;
  JwtMaker& operator=(const JwtMaker&) = delete;

  std::string algorithm() const { return kind_ == Kind::kRsa ? "RS256" : kind_ == Kind::kEc ? "ES256" : "EdDSA"; }
  const std::string& kid() const { return kid_; }

  // `more`: members behind those, as ",\"use\":\"sig\"".
  std::string Jwk(const std::string& more = "") const {
    std::string out = "{\"kid\":\"" + kid_ + "\",";
    if (kind_ == Kind::kRsa) {
      out += "\"kty\":\"RSA\",\"n\":\"" + Number(OSSL_PKEY_PARAM_RSA_N) + "\",\"e\":\"" +
             Number(OSSL_PKEY_PARAM_RSA_E) + "\"";
    } else if (kind_ == Kind::kEc) {
      out += "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" + Number(OSSL_PKEY_PARAM_EC_PUB_X, 32) + "\",\"y\":\"" +
             Number(OSSL_PKEY_PARAM_EC_PUB_Y, 32) + "\"";
    } else {
      std::string x(32, '\0');
      size_t size = x.size();
      EVP_PKEY_get_raw_public_key(key_, reinterpret_cast<unsigned char*>(x.data()), &size);
      out += "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" + Base64Url(x) + "\"";
    }
    return out + more + "}";
  }
  static std::string Jwks(const std::vector<std::string>& keys) {
    std::string out = "{\"keys\":[";
    for (size_t i = 0; i < keys.size(); ++i) out += (i == 0 ? "" : ",") + keys[i];
    return out + "]}";
  }
  std::string Header() const { return "{\"alg\":\"" + algorithm() + "\",\"kid\":\"" + kid_ + "\"}"; }

  // A token with this key's own header.
  std::string Token(const std::string& claims) const { return Token(Header(), claims); }
  std::string Token(const std::string& header, const std::string& claims) const {
    const std::string input = Base64Url(header) + "." + Base64Url(claims);
    return input + "." + Base64Url(kind_ == Kind::kEc ? RawOf(Sign(input)) : Sign(input));
  }
  // As OpenSSL makes it: of an EC key DER.
  std::string Sign(const std::string& input) const {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_DigestSignInit(context, nullptr, kind_ == Kind::kEd ? nullptr : EVP_sha256(), nullptr, key_);
    std::string out(1024, '\0');
    size_t size = out.size();
    EVP_DigestSign(context, reinterpret_cast<unsigned char*>(out.data()), &size,
                   reinterpret_cast<const unsigned char*>(input.data()), input.size());
    EVP_MD_CTX_free(context);
    out.resize(size);
    return out;
  }
  std::string PublicPem() const {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PUBKEY(bio, key_);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string out(data, static_cast<size_t>(size));
    BIO_free(bio);
    return out;
  }
  std::string PublicDer() const {
    unsigned char* der = nullptr;
    const int size = i2d_PUBKEY(key_, &der);
    std::string out(reinterpret_cast<char*>(der), static_cast<size_t>(size));
    OPENSSL_free(der);
    return out;
  }
  // HMAC-SHA256 with that secret.
  static std::string HmacToken(const std::string& header, const std::string& claims, const std::string& secret) {
    const std::string input = Base64Url(header) + "." + Base64Url(claims);
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(input.data()), input.size(), mac, &size);
    return input + "." + Base64Url({reinterpret_cast<char*>(mac), size});
  }

 private:
  std::string Number(const char* name, int size = 0) const {
    BIGNUM* number = nullptr;
    EVP_PKEY_get_bn_param(key_, name, &number);
    std::string out(static_cast<size_t>(size != 0 ? size : BN_num_bytes(number)), '\0');
    BN_bn2binpad(number, reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size()));
    BN_free(number);
    return Base64Url(out);
  }
  static std::string RawOf(const std::string& der) {
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* both = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
    std::string out(64, '\0');
    BN_bn2binpad(ECDSA_SIG_get0_r(both), reinterpret_cast<unsigned char*>(out.data()), 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(both), reinterpret_cast<unsigned char*>(out.data()) + 32, 32);
    ECDSA_SIG_free(both);
    return out;
  }

  const Kind kind_;
  const std::string kid_;
  EVP_PKEY* const key_;
};

}  // namespace sluice::test

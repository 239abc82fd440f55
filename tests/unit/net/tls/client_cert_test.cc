// The element of x-forwarded-client-cert that is made of a certificate: one that ends where it should.
#include "net/tls/client_cert.h"

#include <gtest/gtest.h>

#include <string>

#include "support/tls_certificates.h"

namespace sluice::net {
namespace {

using test::MakeCert;

// Without the hash, which is another one for each key.
std::string Rest(const std::string& element) {
  const size_t hash = element.find("Hash=");
  std::string out = element;
  return hash == out.npos ? out : out.erase(hash, 5 + 64 + 1);
}

TEST(ClientCertElement, HasTheKeysInTheirOrder) {
  const auto client = MakeCert({.common_name = "app", .names = "DNS:a.example.com,URI:spiffe://corp/app,DNS:b"});
  const auto own = MakeCert({.common_name = "us", .names = "URI:spiffe://corp/us"});
  const std::string element = ClientCertElement(client.certificate, own.certificate);
  EXPECT_EQ(Rest(element), "By=spiffe://corp/us;Subject=\"CN=app\";URI=spiffe://corp/app;DNS=a.example.com;DNS=b");
  const size_t hash = element.find("Hash=") + 5;
  EXPECT_EQ(element.find_first_not_of("0123456789abcdef", hash), hash + 64);
  EXPECT_EQ(Rest(ClientCertElement(client.certificate, nullptr)).find("By="), std::string::npos);
}

TEST(ClientCertElement, ANameCannotEndItsElement) {
  const auto client =
      MakeCert({.common_name = "a\",URI=spiffe://lie\\", .names = "URI:spiffe://corp/x;URI=spiffe://lie"});
  const std::string rest = Rest(ClientCertElement(client.certificate, nullptr));
  // Read as its readers do: outside of quotes there is one element with two keys.
  size_t elements = 1, keys = 1;
  bool inside = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (inside && rest[i] == '\\') {
      ++i;
    } else if (rest[i] == '"') {
      inside = !inside;
    } else if (!inside && rest[i] == ',') {
      ++elements;
    } else if (!inside && rest[i] == ';') {
      ++keys;
    }
  }
  EXPECT_FALSE(inside) << rest;
  EXPECT_EQ(elements, 1u) << rest;
  EXPECT_EQ(keys, 2u) << rest;
}

TEST(ClientCertElement, IsBounded) {
  std::string names = "URI:spiffe://corp/app";
  for (int i = 0; i < 200; ++i) names += ",DNS:host-with-a-rather-long-name-" + std::to_string(i) + ".example.com";
  const auto client = MakeCert({.common_name = "app", .names = names});
  const std::string element = ClientCertElement(client.certificate, nullptr);
  EXPECT_LE(element.size(), kClientCertBytesMax);
  EXPECT_GT(element.size(), kClientCertBytesMax - 64);
  EXPECT_TRUE(element.ends_with(".example.com"));
}

}  // namespace
}  // namespace sluice::net

// Requests of gRPC-Web for tests in frames, and its bodies, by OpenSSL's base64.
#pragma once

#include <openssl/evp.h>

#include <string>
#include <string_view>

#include "support/h2_frames.h"

namespace sluice::test {

inline h2::Fields WebRequest(const std::string& type, const h2::Fields& more = {}) {
  return h2::With({{":method", "POST"},
                   {":scheme", "http"},
                   {":path", "/pkg.Service/Method"},
                   {":authority", "test"},
                   {"content-type", type}},
                  more);
}

inline h2::Fields Preflight(const std::string& origin) {
  return {{":method", "OPTIONS"},
          {":scheme", "http"},
          {":path", "/pkg.Service/Method"},
          {":authority", "test"},
          {"origin", origin},
          {"access-control-request-method", "POST"},
          {"access-control-request-headers", "content-type,x-grpc-web"}};
}

inline std::string ToText(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

// Padding may stand anywhere: each group of four by itself. "<broken>" for what is none.
inline std::string FromText(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 4) {
    const std::string_view group = text.substr(at, 4);
    unsigned char out[4];
    if (group.size() < 4 || EVP_DecodeBlock(out, reinterpret_cast<const unsigned char*>(group.data()), 4) != 3)
      return "<broken>";
    const size_t size = group[3] != '=' ? 3 : group[2] != '=' ? 2 : 1;
    bytes.append(reinterpret_cast<const char*>(out), size);
  }
  return bytes;
}

inline std::string TrailerFrame(std::string_view lines) {
  return std::string("\x80") + h2::Big(lines.size(), 4) + std::string(lines);
}

}  // namespace sluice::test

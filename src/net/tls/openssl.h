// OpenSSL's objects as owned pointers, and its error queue as text. Names its types without its headers, which stay in
// the .cc files of this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct bio_st;
struct evp_pkey_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;
struct x509_st;

namespace sluice::net {

struct OpenSslFree {
  void operator()(bio_st* object) const;
  void operator()(evp_pkey_st* object) const;
  void operator()(ssl_ctx_st* object) const;
  void operator()(ssl_session_st* object) const;
  void operator()(ssl_st* object) const;
  void operator()(x509_st* object) const;
};
template <typename T>
using OpenSslPtr = std::unique_ptr<T, OpenSslFree>;

// The reason of the oldest error in this thread's queue, and an empty queue; `otherwise` if there is none.
std::string TakeOpenSslError(std::string_view otherwise);

}  // namespace sluice::net

// Cors: the server's side of the CORS protocol (the Fetch standard, "HTTP CORS protocol") for gRPC-Web: which origins
// may call, what a preflight is answered, what responses say.
//
// A value, immutable. Thread safety: any.
#pragma once

#include <string>
#include <string_view>

#include "http2/fields/header.h"
#include "proxy/options.h"

namespace sluice::proxy::grpc_web {

class Cors {
 public:
  explicit Cors(const CorsOptions& options);

  bool enabled() const { return options_.enabled(); }
  // OPTIONS with Origin and Access-Control-Request-Method: no request of the page's, but the browser's question.
  static bool IsPreflight(const http2::HeaderList& request);
  // As the browser says it. An empty one is not allowed.
  bool Allows(std::string_view origin) const;
  // The whole answer. Of an origin that is not allowed it says nothing, which is how a browser is told no.
  http2::HeaderList AnswerPreflight(const http2::HeaderList& request) const;
  // Whether a field of an upstream's response is the proxy's to say where CORS is on.
  static bool IsOurs(std::string_view name) { return name.starts_with("access-control-"); }
  // What a response says to a page of `origin`.
  void AddTo(std::string_view origin, http2::HeaderList& response) const;

 private:
  void AddOrigin(std::string_view origin, http2::HeaderList& response) const;

  const CorsOptions options_;
  bool any_origin_ = false;
  bool any_header_ = false;
  std::string headers_;  // Access-Control-Allow-Headers
  std::string expose_;   // Access-Control-Expose-Headers
  std::string max_age_;
};

}  // namespace sluice::proxy::grpc_web

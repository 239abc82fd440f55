// HandleHttp: what each path of the HTTP port answers; knows no sockets and no HTTP library.
#pragma once

#include <string>
#include <string_view>

#include "admin/backend.h"

namespace sluice::admin {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  bool wrong_method = false;  // 405: the sender adds Allow
};

// `target` as in the request line; a query is ignored. HEAD is answered as GET, its body left out by the sender.
HttpReply HandleHttp(Backend& backend, std::string_view method, std::string_view target);

// For text between tags and in quoted attributes: & < > " '
std::string EscapeHtml(std::string_view text);

// The page at /: the process, its clusters and their endpoints. Everything that came from outside is escaped.
std::string RenderStatusPage(const ServerView& server, const std::vector<ClusterView>& clusters);

}  // namespace sluice::admin

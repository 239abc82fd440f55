// HandleHttp: what each path of the HTTP port answers; knows no sockets and no HTTP library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "admin/backend.h"
#include "admin/traffic_history.h"

namespace sluice::admin {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  bool wrong_method = false;  // 405: the sender adds Allow
};

// `target` as in the request line, `accept` the value of its Accept fields. HEAD is answered as GET, its body left out
// by the sender.
HttpReply HandleHttp(Backend& backend, const TrafficHistory& history, std::string_view method, std::string_view target,
                     std::string_view accept = {});

// Whether the answer takes microseconds and waits for nothing. Else it may be megabytes, and wait for a cluster that is
// being changed.
bool AnsweredAtOnce(std::string_view method, std::string_view target);

// Whether the value of a request's Host field can only mean this machine's own address: an IP address or localhost,
// with a port or without. A page of another site, whose name leads here for a moment (DNS rebinding), has that name
// there.
bool IsLocalHost(std::string_view host);

// The first value of `name` in the target's query, decoded (application/x-www-form-urlencoded); nullopt: it is not
// there, or no text.
std::optional<std::string> QueryValue(std::string_view target, std::string_view name);

}  // namespace sluice::admin

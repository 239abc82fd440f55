// The admin HTTP port over loopback: whatever bytes come, it answers in HTTP or closes, and it is still there for the
// next.
//
// The input: bytes of a connection; the first one tells in how many sends.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "admin/http_server.h"
#include "base/check.h"
#include "fuzz/support/program.h"
#include "unit/admin/fake_backend.h"

namespace sluice::admin {
namespace {

HttpServer& Server() {
  static FakeBackend backend;
  static const auto server = [] {
    auto started = HttpServer::Start("127.0.0.1:0", backend);
    SLUICE_CHECK(started.ok());
    return std::move(*started);
  }();
  return *server;
}

// All that comes back until the server closes.
std::string Ask(std::string_view bytes, size_t sends) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  SLUICE_CHECK(fd >= 0);
  const timeval limit{9, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  // A reset at the end, so that no port stays in TIME_WAIT: there are some ten thousand inputs a minute.
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(Server().port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SLUICE_CHECK(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  for (size_t left = sends; left > 0 && !bytes.empty(); --left) {
    const size_t n = left == 1 ? bytes.size() : (bytes.size() + left - 1) / left;
    if (send(fd, bytes.data(), n, MSG_NOSIGNAL) != static_cast<ssize_t>(n)) break;  // it has closed already
    bytes.remove_prefix(n);
  }
  shutdown(fd, SHUT_WR);
  std::string answer;
  char buffer[4096];
  ssize_t n;
  while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0) answer.append(buffer, static_cast<size_t>(n));
  SLUICE_CHECK(n == 0 || errno != EAGAIN);  // neither answered nor closed
  close(fd);
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Program program(data, size);
  const uint8_t sends = static_cast<uint8_t>(1 + program.Below(4));
  const std::string answer = Ask(program.Rest(), sends);
  if (!answer.empty()) {
    SLUICE_CHECK(answer.starts_with("HTTP/1.") && answer.find("\r\n\r\n") != answer.npos);
    SLUICE_CHECK(answer.find("X-Content-Type-Options: nosniff\r\n") != answer.npos);
  }
  return 0;
}

}  // namespace sluice::admin

// HttpClient: a connection that sends any bytes and reads the response, for tests of the HTTP port.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace sluice::admin {

class HttpClient {
 public:
  explicit HttpClient(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{20, 0};  // a hanging server fails the test instead of hanging it
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient() { close(fd_); }

  bool Send(const std::string& bytes) {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }

  // As much as the system takes without a wait.
  void SendSome(const std::string& bytes) { (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); }

  // Until the server closes; `reset` tells whether it did so with a reset.
  std::string ReadAll(bool* reset = nullptr) {
    while (ReadSome() > 0) {
    }
    if (reset != nullptr) *reset = last_ < 0 && errno == ECONNRESET;
    EXPECT_FALSE(last_ < 0 && errno == EAGAIN) << "the server neither answers nor closes";
    return std::move(data_);
  }

  // One response with a Content-Length; what follows stays for the next call. `head`: it has no body.
  std::string ReadResponse(bool head = false) {
    size_t end;
    while ((end = data_.find("\r\n\r\n")) == data_.npos) {
      if (ReadSome() <= 0) return std::move(data_);
    }
    const size_t field = data_.find("Content-Length: ");
    size_t size = end + 4;
    if (!head && field < end) size += std::stoul(data_.substr(field + 16));
    while (data_.size() < size) {
      if (ReadSome() <= 0) break;
    }
    std::string response = data_.substr(0, size);
    data_.erase(0, size);
    return response;
  }

  // Whether there is something to read (or an end) in that time.
  bool Readable(int milliseconds) {
    pollfd poller{fd_, POLLIN, 0};
    return poll(&poller, 1, milliseconds) > 0;
  }

 private:
  ssize_t ReadSome() {
    char buffer[4096];
    last_ = recv(fd_, buffer, sizeof(buffer), 0);
    if (last_ > 0) data_.append(buffer, static_cast<size_t>(last_));
    return last_;
  }

  int fd_;
  ssize_t last_ = 0;
  std::string data_;
};

}  // namespace sluice::admin

// FrameSocket: a nonblocking connection that sends bytes and reads frames. Goaways: those that it has read.
#pragma once

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/h2_frames.h"

namespace sluice::attack {

class FrameSocket {
 public:
  FrameSocket() = default;
  ~FrameSocket() { Close(); }
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  int fd() const { return fd_; }
  // Takes over `fd`. Of what is read, the first `preface` bytes are no frames.
  void Open(int fd, size_t preface = 0) {
    Close();
    fd_ = fd;
    preface_left_ = preface;
    ::fcntl(fd_, F_SETFL, O_NONBLOCK);
    const int one = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    out_.clear();
    in_.clear();
    sent_ = 0;
  }

  bool AllSent() const { return sent_ == out_.size(); }
  // What is to be sent, when all before is.
  void Send(std::string bytes) {
    out_ = std::move(bytes);
    sent_ = 0;
  }
  // As much as it takes now, which is added to `total`. False: the connection has ended.
  bool Write(uint64_t& total) {
    const ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<size_t>(n);
    total += static_cast<uint64_t>(n);
    return true;
  }
  // Adds the frames that have come whole. False: the connection has ended.
  bool Read(std::vector<h2::Frame>& frames) {
    static char buffer[1 << 18];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n == 0) return false;
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    in_.append(buffer, static_cast<size_t>(n));
    const size_t skip = std::min(preface_left_, in_.size());
    in_.erase(0, skip);
    preface_left_ -= skip;
    if (preface_left_ == 0) frames = h2::TakeFrames(in_);
    return true;
  }

 private:
  int fd_ = -1;
  size_t preface_left_ = 0;
  std::string out_, in_;
  size_t sent_ = 0;
};

// How often which GOAWAY came, by code and text.
class Goaways {
 public:
  void Count(const h2::Frame& frame) {
    std::string text = "GOAWAY " + std::to_string(frame.Word(4));
    if (frame.payload.size() > 8) text += " \"" + frame.payload.substr(8) + "\"";
    ++counts_[text];
  }
  // To the end of a line, which it ends.
  void Print() const {
    for (const auto& [text, count] : counts_)
      std::printf(", %llu x %s", static_cast<unsigned long long>(count), text.c_str());
    std::printf("\n");
  }

 private:
  std::map<std::string, uint64_t> counts_;
};

}  // namespace sluice::attack

// RawPeer: one end of a TCP connection that speaks HTTP/2 byte by byte, rightly or wrongly, in either role.
//
// It shares no code with Sluice: frames are put together here, header blocks are read by libnghttp2.
#pragma once

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/wait_until.h"

namespace sluice::integration {

namespace raw {

// RFC 9113 section 6.
enum Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
enum Flag : uint8_t { kEndStream = 1, kAck = 1, kEndHeaders = 4, kPadded = 8, kPriorityFlag = 0x20 };
// RFC 9113 section 7.
enum Error : uint32_t {
  kNoError = 0,
  kProtocolError = 1,
  kInternalError = 2,
  kFlowControlError = 3,
  kSettingsTimeout = 4,
  kStreamClosed = 5,
  kFrameSizeError = 6,
  kRefusedStream = 7,
  kCancel = 8,
  kCompressionError = 9,
  kConnectError = 10,
  kEnhanceYourCalm = 11
};

using Fields = std::vector<std::pair<std::string, std::string>>;

inline constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
std::string U32(uint32_t value);
std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload);
// Literal fields without indexing and without Huffman (RFC 7541 6.2.2).
std::string Block(const Fields& fields);
std::string Headers(uint32_t stream, const Fields& fields, bool end_stream = false);
std::string Settings(const std::vector<std::pair<uint16_t, uint32_t>>& values = {});
// The request of a unary echo call, and its fields.
Fields EchoHeaders(const std::string& method = "Unary");
// A gRPC message: the prefix of five bytes and the payload.
std::string Message(const std::string& payload);
// A whole well-formed call of echo's Unary with an empty request.
std::string EchoCall(uint32_t stream);

}  // namespace raw

class RawPeer {
 public:
  struct Frame {
    uint8_t type = 0, flags = 0;
    uint32_t stream = 0;
    std::string payload;
    uint32_t Number(size_t offset) const;  // big-endian, in the payload
  };

  static RawPeer Connect(uint16_t port);
  explicit RawPeer(int fd);
  RawPeer(RawPeer&& other) noexcept;
  RawPeer& operator=(RawPeer&&) = delete;
  ~RawPeer();

  // False once the other side has closed.
  bool Send(const std::string& bytes);
  // Preface and empty SETTINGS, and takes the server's SETTINGS.
  void Handshake();
  // The server role's part: reads the preface, sends SETTINGS.
  bool Accept();
  // Closes the sending half.
  void HalfClose();

  // The next frame; nothing at the end of the connection. A peer that says nothing for kLongWait fails the
  // test. Acknowledges SETTINGS on the way.
  std::optional<Frame> Next();
  // Skips frames until one fits; nothing when the connection ends first.
  std::optional<Frame> Until(const std::function<bool(const Frame&)>& fits);
  // Skips frames until a GOAWAY and then the end. The GOAWAY's error code; nothing if none came.
  std::optional<uint32_t> GoawayThenEnd();
  // What came for a stream up to its end: fields of all header blocks, bytes of DATA, or the RST_STREAM's code.
  struct Answer {
    std::map<std::string, std::string> fields;
    std::string data;
    std::optional<uint32_t> reset;
    bool ended = false;
    std::string grpc_status() const { return fields.count("grpc-status") ? fields.at("grpc-status") : "none"; }
  };
  Answer AnswerOf(uint32_t stream);
  // Everything until the connection ends.
  std::string Rest();

 private:
  bool Fill();  // reads more; false at the end
  void Decode(const Frame& frame, Answer* answer);

  int fd_;
  std::string in_;
  nghttp2_hd_inflater* inflater_ = nullptr;
};

}  // namespace sluice::integration

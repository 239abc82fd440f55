// HTTP/2 error codes (RFC 9113 section 7).
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::http2 {

enum class ErrorCode : uint32_t {
  kNoError = 0x0,
  kProtocolError = 0x1,
  kInternalError = 0x2,
  kFlowControlError = 0x3,
  kSettingsTimeout = 0x4,
  kStreamClosed = 0x5,
  kFrameSizeError = 0x6,
  kRefusedStream = 0x7,
  kCancel = 0x8,
  kCompressionError = 0x9,
  kConnectError = 0xa,
  kEnhanceYourCalm = 0xb,
  kInadequateSecurity = 0xc,
  kHttp11Required = 0xd,
};

// The RFC's name; "UNKNOWN" for codes it does not define.
std::string_view ToString(ErrorCode code);

}  // namespace sluice::http2

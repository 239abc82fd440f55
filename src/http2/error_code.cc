#include "http2/error_code.h"

namespace sluice::http2 {

std::string_view ToString(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNoError:
      return "NO_ERROR";
    case ErrorCode::kProtocolError:
      return "PROTOCOL_ERROR";
    case ErrorCode::kInternalError:
      return "INTERNAL_ERROR";
    case ErrorCode::kFlowControlError:
      return "FLOW_CONTROL_ERROR";
    case ErrorCode::kSettingsTimeout:
      return "SETTINGS_TIMEOUT";
    case ErrorCode::kStreamClosed:
      return "STREAM_CLOSED";
    case ErrorCode::kFrameSizeError:
      return "FRAME_SIZE_ERROR";
    case ErrorCode::kRefusedStream:
      return "REFUSED_STREAM";
    case ErrorCode::kCancel:
      return "CANCEL";
    case ErrorCode::kCompressionError:
      return "COMPRESSION_ERROR";
    case ErrorCode::kConnectError:
      return "CONNECT_ERROR";
    case ErrorCode::kEnhanceYourCalm:
      return "ENHANCE_YOUR_CALM";
    case ErrorCode::kInadequateSecurity:
      return "INADEQUATE_SECURITY";
    case ErrorCode::kHttp11Required:
      return "HTTP_1_1_REQUIRED";
  }
  return "UNKNOWN";  // A peer may send any number (RFC 9113 7).
}

}  // namespace sluice::http2

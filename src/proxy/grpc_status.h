// The one place where the proxy's errors become what a gRPC client sees: code, message, reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http2/fields/header.h"

namespace sluice::proxy {

// https://grpc.github.io/grpc/core/md_doc_statuscodes.html
enum class GrpcCode : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};
inline constexpr size_t kGrpcCodes = 17;

std::string_view ToString(GrpcCode code);

// The value of sluice-processed, in trailers, log and metrics: "no", no backend has worked on the call, so that it may
// be made again whatever its method does; or "maybe".
constexpr std::string_view ProcessedText(bool maybe_processed) { return maybe_processed ? "maybe" : "no"; }

// Which code a client gets for an error of ours. One switch, no default. An upstream's RST_STREAM has its kinds, so
// that its code maps as in gRPC over HTTP/2, "Errors".
GrpcCode ToGrpcCode(base::ErrorKind kind);
// The one that the error names, else that of its kind.
GrpcCode ToGrpcCode(const base::Error& error);

// An error as headers: trailers-only (":status" and "content-type" first) or plain trailers after a response has begun.
struct GrpcError {
  GrpcCode code;
  std::string message;
  std::string_view reason;
  std::string bound;  // sluice-limit: which limit refused
  std::optional<std::chrono::milliseconds> retry_after;
  bool maybe_processed = false;  // sluice-processed
};
GrpcError ToGrpcError(const base::Error& error);
// `request_type`: the request's content-type, for trailers_only.
http2::HeaderList MakeTrailers(const GrpcError& error, bool trailers_only, std::string_view request_type = {});
// The content-type of an answer of ours: that of gRPC, with the format that the request's names, because there are
// clients that read no other.
std::string AnswerType(std::string_view request_type);

// What the proxy says at most of a text that peers have a part in: messages, bounds. Clients have limits of a few KiB
// for a whole header list.
inline constexpr size_t kMessageBytesMax = 256;
// The front of `text`, at most `bytes_max` (at least 8) bytes of it, cut between two characters of UTF-8; "..." at its
// end says that it was cut.
std::string CutText(std::string_view text, size_t bytes_max = kMessageBytesMax);

// The same to a client whose request is not gRPC: it looks at :status alone. Complete: no body follows.
std::string_view ToHttpStatus(base::ErrorKind kind);
http2::HeaderList MakeHttpAnswer(const base::Error& error);
// A whole answer as the client of `request` reads it: gRPC or plain HTTP.
http2::HeaderList MakeAnswer(const base::Error& error, const http2::HeaderList& request);

// grpc-message percent-encoding (gRPC over HTTP/2, "Status-Message"). Blanks at either end are encoded too: RFC 9113
// 8.2.1 forbids them there.
std::string PercentEncode(std::string_view text);
// What a response without grpc-status comes to by its :status, other than 200 (gRPC, "HTTP to gRPC Status Code
// Mapping").
GrpcCode FromHttpStatus(std::string_view status);
// The value of grpc-status, or kUnknown for what is not a number 0..16.
GrpcCode ParseGrpcStatus(std::string_view value);
// One or two digits of a code, as it goes on to clients.
constexpr bool IsPlainGrpcStatus(std::string_view value) {
  const bool two = value.size() == 2 && value[0] == '1' && value[1] <= '6';
  return two || value.size() == 1 ? value.back() >= '0' && value.back() <= '9' : false;
}
// The grpc-status of a backend that is not plain, as clients are to read it: without the zeros in front; another number
// as it is, which an application may have chosen; and what is no number (gRPC over HTTP/2, "Responses") as UNKNOWN,
// with what came in front of grpc-message.
void RespellGrpcStatus(http2::HeaderList& trailers);

}  // namespace sluice::proxy

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
http2::HeaderList MakeTrailers(const GrpcError& error, bool trailers_only);

// The same to a client whose request is not gRPC: it looks at :status alone. Complete: no body follows.
std::string_view ToHttpStatus(base::ErrorKind kind);
http2::HeaderList MakeHttpAnswer(const base::Error& error);

// grpc-message percent-encoding (gRPC over HTTP/2, "Status-Message").
std::string PercentEncode(std::string_view text);
// What a response without grpc-status comes to by its :status, other than 200 (gRPC, "HTTP to gRPC Status Code
// Mapping").
GrpcCode FromHttpStatus(std::string_view status);
// The value of grpc-status, or kUnknown for what is not a number 0..16.
GrpcCode ParseGrpcStatus(std::string_view value);

}  // namespace sluice::proxy

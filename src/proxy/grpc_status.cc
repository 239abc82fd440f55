#include "proxy/grpc_status.h"

#include <algorithm>
#include <charconv>

#include "http2/fields/grpc_type.h"

namespace sluice::proxy {

using base::ErrorKind;

std::string_view ToString(GrpcCode code) {
  static constexpr std::string_view kNames[kGrpcCodes] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  return kNames[static_cast<size_t>(code)];
}

GrpcCode ToGrpcCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInternal:
      return GrpcCode::kInternal;
    case ErrorKind::kInvalidArgument:
      return GrpcCode::kInvalidArgument;
    case ErrorKind::kNotFound:
      return GrpcCode::kNotFound;
    case ErrorKind::kConflict:
      return GrpcCode::kFailedPrecondition;
    case ErrorKind::kIo:
      return GrpcCode::kInternal;
    case ErrorKind::kNoRoute:
      return GrpcCode::kUnimplemented;
    case ErrorKind::kNoEndpoint:
      return GrpcCode::kUnavailable;
    case ErrorKind::kConnectFailed:
      return GrpcCode::kUnavailable;
    case ErrorKind::kConnectTimeout:
      return GrpcCode::kUnavailable;
    case ErrorKind::kConnectionLost:
    case ErrorKind::kConnectionEnded:
    case ErrorKind::kPoisonCall:
    case ErrorKind::kPendingTimeout:
      return GrpcCode::kUnavailable;
    case ErrorKind::kUpstreamReset:
      return GrpcCode::kInternal;
    case ErrorKind::kUpstreamRefused:
      return GrpcCode::kUnavailable;
    case ErrorKind::kUpstreamProtocol:
      return GrpcCode::kInternal;
    case ErrorKind::kUpstreamNoStatus:
      return GrpcCode::kUnknown;
    case ErrorKind::kDeadlineExceeded:
      return GrpcCode::kDeadlineExceeded;
    case ErrorKind::kCancelled:
      return GrpcCode::kCancelled;
    case ErrorKind::kQueueFull:
      return GrpcCode::kResourceExhausted;
    case ErrorKind::kDraining:
      return GrpcCode::kUnavailable;
    case ErrorKind::kMalformedRequest:
      return GrpcCode::kInternal;
    case ErrorKind::kTooLarge:
      return GrpcCode::kResourceExhausted;
    case ErrorKind::kBusy:
      return GrpcCode::kAborted;
    case ErrorKind::kRemoved:
      return GrpcCode::kNotFound;
    case ErrorKind::kUpstreamCancelled:
      return GrpcCode::kCancelled;
    case ErrorKind::kUpstreamOverloaded:
      return GrpcCode::kResourceExhausted;
    case ErrorKind::kRateLimited:
      return GrpcCode::kResourceExhausted;
    case ErrorKind::kConcurrencyLimited:
    case ErrorKind::kQueueTime:
    case ErrorKind::kDeadlineTooNear:
    case ErrorKind::kTooManyClients:
      return GrpcCode::kResourceExhausted;
    case ErrorKind::kUpstreamStalled:
      return GrpcCode::kUnavailable;
    case ErrorKind::kTryTimeout:
      return GrpcCode::kDeadlineExceeded;
    case ErrorKind::kMemoryLimited:
      return GrpcCode::kResourceExhausted;
    case ErrorKind::kAccessDenied:
      return GrpcCode::kPermissionDenied;
    case ErrorKind::kJwtMissing:
    case ErrorKind::kJwtInvalid:
      return GrpcCode::kUnauthenticated;
    case ErrorKind::kFaultInjected:
      return GrpcCode::kUnavailable;
    case ErrorKind::kLoop:
      return GrpcCode::kInternal;
  }
  return GrpcCode::kInternal;
}

GrpcCode ToGrpcCode(const base::Error& error) {
  return error.grpc_code != 0 && error.grpc_code < kGrpcCodes ? static_cast<GrpcCode>(error.grpc_code)
                                                              : ToGrpcCode(error.kind);
}

GrpcError ToGrpcError(const base::Error& error) {
  return {ToGrpcCode(error), error.detail,      base::Reason(error.kind),
          error.bound,       error.retry_after, error.maybe_processed};
}

std::string PercentEncode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const bool at_end = c == ' ' && (i < first || i > last || first == text.npos);
    if (c >= 0x20 && c <= 0x7e && c != '%' && !at_end) {
      out += static_cast<char>(c);
    } else {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  return out;
}

GrpcCode FromHttpStatus(std::string_view status) {
  if (status == "400") return GrpcCode::kInternal;
  if (status == "401") return GrpcCode::kUnauthenticated;
  if (status == "403") return GrpcCode::kPermissionDenied;
  if (status == "404") return GrpcCode::kUnimplemented;
  if (status == "429" || status == "502" || status == "503" || status == "504") return GrpcCode::kUnavailable;
  return GrpcCode::kUnknown;
}

GrpcCode ParseGrpcStatus(std::string_view value) {
  uint32_t code = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), code);
  if (error != std::errc() || end != value.data() + value.size() || code >= kGrpcCodes) return GrpcCode::kUnknown;
  return static_cast<GrpcCode>(code);
}

void RespellGrpcStatus(http2::HeaderList& trailers) {
  using http2::Token;
  constexpr size_t kNumberMax = 10, kShownMax = 32, kMessageMax = 1024;
  const http2::Field* status = trailers.Find(Token::kGrpcStatus);
  if (status == nullptr || IsPlainGrpcStatus(status->value())) return;
  const std::string value(status->value());
  const bool number = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
  const size_t zeros = std::min(value.find_first_not_of('0'), value.size());
  if (number && value.size() - zeros <= kNumberMax) {
    const std::string plain = zeros == value.size() ? "0" : value.substr(zeros);
    return trailers.Set(Token::kGrpcStatus, "grpc-status", plain);
  }
  std::string message = PercentEncode("grpc-status \"" + CutText(value, kShownMax) + "\" of the endpoint is no number");
  if (const http2::Field* said = trailers.Find(Token::kGrpcMessage)) {
    // It is encoded already: not cut inside of "%20".
    std::string_view text = said->value().substr(0, kMessageMax);
    const size_t percent = text.rfind('%');
    if (text.size() == kMessageMax && percent != text.npos && percent + 3 > text.size()) text = text.substr(0, percent);
    message.append(": ").append(text);
  }
  trailers.Set(Token::kGrpcStatus, "grpc-status", "2");
  trailers.Set(Token::kGrpcMessage, "grpc-message", message);
}

std::string_view ToHttpStatus(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kMalformedRequest:
      return "400";
    case ErrorKind::kAccessDenied:
      return "403";
    case ErrorKind::kJwtMissing:
    case ErrorKind::kJwtInvalid:
      return "401";
    case ErrorKind::kNoRoute:
    case ErrorKind::kNotFound:
      return "404";
    case ErrorKind::kConflict:
      return "409";
    case ErrorKind::kRateLimited:
    case ErrorKind::kConcurrencyLimited:
    case ErrorKind::kQueueTime:
    case ErrorKind::kDeadlineTooNear:
    case ErrorKind::kTooManyClients:
      return "429";
    case ErrorKind::kTooLarge:
      return "431";
    case ErrorKind::kCancelled:
      return "499";  // for log and metrics: no client hears it
    case ErrorKind::kInternal:
    case ErrorKind::kIo:
      return "500";
    case ErrorKind::kLoop:
      return "508";  // RFC 5842 7.2
    case ErrorKind::kConnectionLost:
    case ErrorKind::kConnectionEnded:
    case ErrorKind::kPoisonCall:
    case ErrorKind::kUpstreamReset:
    case ErrorKind::kUpstreamCancelled:
    case ErrorKind::kUpstreamProtocol:
    case ErrorKind::kUpstreamNoStatus:
      return "502";
    case ErrorKind::kDeadlineExceeded:
    case ErrorKind::kTryTimeout:
    case ErrorKind::kUpstreamStalled:
      return "504";
    case ErrorKind::kNoEndpoint:
    case ErrorKind::kConnectFailed:
    case ErrorKind::kConnectTimeout:
    case ErrorKind::kPendingTimeout:
    case ErrorKind::kUpstreamRefused:
    case ErrorKind::kUpstreamOverloaded:
    case ErrorKind::kQueueFull:
    case ErrorKind::kDraining:
    case ErrorKind::kMemoryLimited:
    case ErrorKind::kBusy:
    case ErrorKind::kRemoved:
    case ErrorKind::kFaultInjected:
      return "503";
  }
  return "500";
}

http2::HeaderList MakeHttpAnswer(const base::Error& error) {
  http2::HeaderList fields;
  fields.Add(":status", ToHttpStatus(error.kind));
  fields.Add("content-length", "0");
  fields.Add("sluice-reason", base::Reason(error.kind));
  fields.Add("sluice-processed", ProcessedText(error.maybe_processed));
  // RFC 9110 15.5.2 wants it with 401; RFC 6750 3.1 wants no error code where there was no credential.
  if (error.kind == ErrorKind::kJwtMissing) fields.Add("www-authenticate", "Bearer");
  if (error.kind == ErrorKind::kJwtInvalid) fields.Add("www-authenticate", "Bearer error=\"invalid_token\"");
  if (!error.bound.empty()) fields.Add("sluice-limit", PercentEncode(CutText(error.bound)));
  // RFC 9110 10.2.3: whole seconds.
  if (error.retry_after) {
    fields.Add("retry-after", std::to_string(std::chrono::ceil<std::chrono::seconds>(*error.retry_after).count()));
  }
  return fields;
}

http2::HeaderList MakeAnswer(const base::Error& error, const http2::HeaderList& request) {
  const http2::Field* type = request.Find(http2::Token::kContentType);
  if (type == nullptr || !http2::IsGrpcType(type->value())) return MakeHttpAnswer(error);
  return MakeTrailers(ToGrpcError(error), /*trailers_only=*/true, type->value());
}

std::string AnswerType(std::string_view request_type) {
  std::string type("application/grpc");
  const http2::GrpcType requested = http2::ParseGrpcType(request_type);
  if (!requested.format.empty()) type.append("+").append(requested.format);
  return type;
}

std::string CutText(std::string_view text, size_t bytes_max) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= bytes_max) return std::string(text);
  size_t end = bytes_max - kCut.size();
  // Of UTF-8 at most three bytes follow the first of a character.
  for (int i = 0; i < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; ++i) --end;
  return std::string(text.substr(0, end)).append(kCut);
}

http2::HeaderList MakeTrailers(const GrpcError& error, bool trailers_only, std::string_view request_type) {
  http2::HeaderList fields;
  if (trailers_only) {
    fields.Add(":status", "200");
    fields.Add("content-type", AnswerType(request_type));
  }
  fields.Add("grpc-status", std::to_string(static_cast<int>(error.code)));
  if (!error.message.empty()) fields.Add("grpc-message", PercentEncode(CutText(error.message)));
  if (!error.reason.empty()) fields.Add("sluice-reason", error.reason);
  fields.Add("sluice-processed", ProcessedText(error.maybe_processed));
  if (!error.bound.empty()) fields.Add("sluice-limit", PercentEncode(CutText(error.bound)));
  // gRFC A6: a client that retries waits this long.
  if (error.retry_after) fields.Add("grpc-retry-pushback-ms", std::to_string(error.retry_after->count()));
  return fields;
}

}  // namespace sluice::proxy

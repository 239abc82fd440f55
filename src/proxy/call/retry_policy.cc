#include "proxy/call/retry_policy.h"

#include <algorithm>
#include <charconv>

namespace sluice::proxy {

using base::ErrorKind;
using http2::Token;

namespace {

template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

AttemptEnd EndOf(const RetryOptions& options, const base::Error* error, GrpcCode status) {
  if (error == nullptr) {
    return (options.on >> static_cast<uint32_t>(status) & 1) != 0 ? AttemptEnd::kInDoubt : AttemptEnd::kFinal;
  }
  switch (error->kind) {
    case ErrorKind::kDraining:
      return AttemptEnd::kLeft;
    case ErrorKind::kConnectFailed:
    case ErrorKind::kConnectTimeout:
    case ErrorKind::kPendingTimeout:
    case ErrorKind::kQueueFull:
      return AttemptEnd::kUnsent;
    case ErrorKind::kUpstreamRefused:
      return AttemptEnd::kRefused;
    case ErrorKind::kConnectionLost:
    case ErrorKind::kConnectionEnded:
    case ErrorKind::kUpstreamReset:
    case ErrorKind::kUpstreamProtocol:
    case ErrorKind::kUpstreamCancelled:
    case ErrorKind::kUpstreamOverloaded:
    case ErrorKind::kUpstreamStalled:
    case ErrorKind::kTryTimeout:
      return AttemptEnd::kInDoubt;
    default:  // the deadline, and what is no end of an attempt
      return AttemptEnd::kFinal;
  }
}

bool MayRepeat(const RetryOptions& options, const CanonicalRequest& request) {
  switch (options.methods) {
    case RetryOptions::Methods::kAll:
      return true;
    case RetryOptions::Methods::kNone:
      return false;
    case RetryOptions::Methods::kDeclared:
    case RetryOptions::Methods::kListed:
      break;
  }
  const http2::Field* path = request.Find(Token::kPath);
  return path != nullptr && std::binary_search(options.paths.begin(), options.paths.end(), path->value());
}

base::Nanos Backoff(const RetryOptions& options, uint32_t n, base::Random& random) {
  const base::Nanos max = options.backoff_max;
  base::Nanos wait = options.backoff_base;
  for (uint32_t i = 0; i < n && wait < max; ++i) wait *= 2;
  const double factor = 0.8 + 0.4 * random.Unit();
  return base::Nanos(static_cast<int64_t>(static_cast<double>(std::min(wait, max).count()) * factor));
}

Pushback ReadPushback(const http2::HeaderList& response) {
  const http2::Field* field = response.Find(Token::kGrpcRetryPushbackMs);
  if (field == nullptr) return {};
  const auto value = Number<int32_t>(field->value());
  if (!value || *value < 0 || *value > kPushbackMax.count()) return {true, std::nullopt};
  return {false, std::chrono::milliseconds(*value)};
}

uint32_t PreviousAttempts(const http2::HeaderList& request) {
  constexpr uint32_t kMax = 1'000'000;  // so that a sum stays one
  const http2::Field* field = request.Find(Token::kGrpcPreviousRpcAttempts);
  return field == nullptr ? 0 : std::min(Number<uint32_t>(field->value()).value_or(0), kMax);
}

}  // namespace sluice::proxy

// The messages of grpc.health.v1 on the wire, as gRPC frames them in DATA: a HealthCheckRequest to send, and a reader
// of HealthCheckResponses (gRPC's health checking protocol; PROTOCOL-HTTP2, "Length-Prefixed-Message").
//
//   message HealthCheckRequest { string service = 1; }   message HealthCheckResponse { ServingStatus status = 1; }
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::upstream {

// Numbered as in the protocol.
enum class ServingStatus : uint8_t { kUnknown, kServing, kNotServing, kServiceUnknown };
std::string_view ToString(ServingStatus status);  // as the protocol spells it: "NOT_SERVING"

// The request for `service`, with gRPC's five bytes before it.
std::string EncodeHealthRequest(std::string_view service);

// Reads responses from the bytes of DATA, which may be split anywhere. One thread at a time.
class HealthMessageReader {
 public:
  // A response is two bytes. Fields that are not known yet may come with it, up to this size.
  static constexpr size_t kMessageBytesMax = 4096;

  // False: the bytes are no such messages, as problem() says; nothing may be fed after that.
  bool Feed(std::string_view bytes);
  // Whole messages so far, and the status in the last one (kUnknown before the first).
  uint64_t messages() const { return messages_; }
  ServingStatus status() const { return status_; }
  // A message has begun and not ended.
  bool in_message() const { return !part_.empty(); }
  std::string_view problem() const { return problem_; }

 private:
  static constexpr size_t kPrefixBytes = 5;
  bool Parse(std::string_view message);

  std::string part_;  // of the message that is being read, with its prefix
  uint64_t messages_ = 0;
  ServingStatus status_ = ServingStatus::kUnknown;
  std::string_view problem_;
};

}  // namespace sluice::upstream

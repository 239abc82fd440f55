#include "upstream/health/health_message.h"

#include <algorithm>

namespace sluice::upstream {
namespace {

// Takes a varint off the front (protobuf's "Base 128 Varints": at most ten bytes). False: it is cut off or too long.
bool TakeVarint(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    if (shift < 64) *value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool Skip(std::string_view* bytes, uint64_t size) {
  if (size > bytes->size()) return false;
  bytes->remove_prefix(size);
  return true;
}

}  // namespace

std::string_view ToString(ServingStatus status) {
  switch (status) {
    case ServingStatus::kUnknown:
      return "UNKNOWN";
    case ServingStatus::kServing:
      return "SERVING";
    case ServingStatus::kNotServing:
      return "NOT_SERVING";
    case ServingStatus::kServiceUnknown:
      return "SERVICE_UNKNOWN";
  }
  return "UNKNOWN";
}

std::string EncodeHealthRequest(std::string_view service) {
  std::string message;
  if (!service.empty()) {
    message.push_back(0x0a);  // field 1, length-delimited
    for (size_t rest = service.size();; rest >>= 7) {
      message.push_back(static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0)));
      if (rest <= 0x7f) break;
    }
    message.append(service);
  }
  std::string framed(1, '\0');  // not compressed
  for (int shift = 24; shift >= 0; shift -= 8) framed.push_back(static_cast<char>(message.size() >> shift));
  return framed + message;
}

bool HealthMessageReader::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t wanted = kPrefixBytes;
    if (part_.size() >= kPrefixBytes) {
      uint32_t size = 0;
      for (size_t i = 1; i < kPrefixBytes; ++i) size = size << 8 | static_cast<uint8_t>(part_[i]);
      wanted += size;  // below kMessageBytesMax, or the prefix was refused
    }
    const size_t take = std::min(bytes.size(), wanted - part_.size());
    part_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    if (part_.size() < kPrefixBytes) return true;
    if (part_.size() == kPrefixBytes) {
      if (part_[0] != '\0') {
        problem_ = "a compressed message, though none was offered";
        return false;
      }
      if (part_[1] != 0 || part_[2] != 0 || static_cast<uint8_t>(part_[3]) > kMessageBytesMax >> 8 ||
          (static_cast<uint8_t>(part_[3]) == kMessageBytesMax >> 8 && part_[4] != 0)) {
        problem_ = "a message too long for a HealthCheckResponse";
        return false;
      }
      wanted = kPrefixBytes + (size_t{static_cast<uint8_t>(part_[3])} << 8) + static_cast<uint8_t>(part_[4]);
    }
    if (part_.size() < wanted) continue;
    if (!Parse(std::string_view(part_).substr(kPrefixBytes))) {
      problem_ = "a message that is no HealthCheckResponse";
      return false;
    }
    part_.clear();
    ++messages_;
  }
  return true;
}

// Fields that are not known are skipped, as protobuf demands; of several values the last one counts.
bool HealthMessageReader::Parse(std::string_view message) {
  uint64_t status = 0;
  while (!message.empty()) {
    uint64_t tag = 0, value = 0;
    if (!TakeVarint(&message, &tag) || tag >> 3 == 0) return false;
    bool good = false;
    switch (tag & 7) {
      case 0:
        good = TakeVarint(&message, &value);
        if (tag >> 3 == 1) status = value;
        break;
      case 1:
        good = Skip(&message, 8);
        break;
      case 2:
        good = TakeVarint(&message, &value) && Skip(&message, value);
        break;
      case 5:
        good = Skip(&message, 4);
        break;
      default:
        break;
    }
    if (!good) return false;
  }
  // A value of a later protocol is not SERVING.
  status_ = status <= static_cast<uint64_t>(ServingStatus::kServiceUnknown) ? static_cast<ServingStatus>(status)
                                                                            : ServingStatus::kUnknown;
  return true;
}

}  // namespace sluice::upstream

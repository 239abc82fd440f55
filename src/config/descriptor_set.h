// DescriptorSet: what a protobuf descriptor set says of services, methods and the numbers of message fields.
//
// Made by `protoc --include_imports --descriptor_set_out=FILE`. Read while a configuration is parsed and forgotten with
// it; the only part of this layer that knows protobuf, which does not show here. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::config {

inline constexpr size_t kDescriptorSetBytesMax = 64 * 1024 * 1024;

class DescriptorSet {
 public:
  struct Method {
    std::string name;   // "Get"
    std::string path;   // "/pkg.Service/Get"
    std::string input;  // "pkg.GetRequest"
    bool client_streaming = false;
    bool server_streaming = false;
    bool no_side_effects = false;  // idempotency_level = NO_SIDE_EFFECTS
    bool idempotent = false;       // or IDEMPOTENT: to do it twice is to do it once
    bool unary() const { return !client_streaming && !server_streaming; }
  };

  DescriptorSet();
  ~DescriptorSet();
  DescriptorSet(const DescriptorSet&) = delete;
  DescriptorSet& operator=(const DescriptorSet&) = delete;

  // Reads the file; once. Errors, with no file name in them: kIo where it cannot be read, is no regular file or has
  // more than kDescriptorSetBytesMax; kInvalidArgument where it is no descriptor set or a whole one.
  base::Status Load(const std::string& path);
  // Load, of the file's bytes.
  base::Status Build(std::string_view bytes);

  // Full names, sorted; valid as long as this object.
  const std::vector<std::string>& services() const { return services_; }
  // Of a service by its full name, in the order of the .proto file; none for a service that is not there.
  std::vector<Method> Methods(std::string_view service) const;

  // The numbers of a field from the message down: "user.id" of "pkg.GetRequest" may be {3,
  // 1}. 1..proxy::kFieldDepthMax. The path leads through singular messages to a singular scalar, string, bytes or enum;
  // members of a oneof count as others. Else an error that says what is there instead.
  base::Result<std::vector<uint32_t>> Resolve(std::string_view message, std::string_view field) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<std::string> services_;
};

}  // namespace sluice::config

// A descriptor set to test with, and a place in which it lies beside a configuration.
#pragma once

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace sluice::config {

// Two files: messages, and the services p.Users and p.Orders that use them.
inline constexpr char kTestDescriptors[] = R"pb(
  file {
    name: "types.proto"
    package: "p"
    syntax: "proto3"
    message_type {
      name: "User"
      field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
      field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "friend" number: 3 type: TYPE_MESSAGE type_name: ".p.User" label: LABEL_OPTIONAL }
    }
    message_type { name: "Empty" }
    message_type { name: "Response" }
    message_type {
      name: "GetRequest"
      field { name: "user" number: 3 type: TYPE_MESSAGE type_name: ".p.User" label: LABEL_OPTIONAL }
      field { name: "tags" number: 4 type: TYPE_STRING label: LABEL_REPEATED }
      field { name: "friends" number: 5 type: TYPE_MESSAGE type_name: ".p.User" label: LABEL_REPEATED }
      field { name: "labels" number: 6 type: TYPE_MESSAGE type_name: ".p.GetRequest.LabelsEntry" label: LABEL_REPEATED }
      field { name: "token" number: 7 type: TYPE_BYTES label: LABEL_OPTIONAL oneof_index: 0 }
      field { name: "other" number: 8 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
      oneof_decl { name: "choice" }
      nested_type {
        name: "LabelsEntry"
        options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
        field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
      }
    }
    message_type {
      name: "ListRequest"
      field { name: "user" number: 1 type: TYPE_MESSAGE type_name: ".p.User" label: LABEL_OPTIONAL }
    }
  }
  file {
    name: "services.proto"
    package: "p"
    syntax: "proto3"
    dependency: "types.proto"
    service {
      name: "Users"
      method {
        name: "Watch"
        input_type: ".p.GetRequest"
        output_type: ".p.Response"
        server_streaming: true
        options { idempotency_level: NO_SIDE_EFFECTS }
      }
      method {
        name: "List"
        input_type: ".p.ListRequest"
        output_type: ".p.Response"
        options { idempotency_level: NO_SIDE_EFFECTS }
      }
      method {
        name: "Get"
        input_type: ".p.GetRequest"
        output_type: ".p.Response"
        options { idempotency_level: NO_SIDE_EFFECTS }
      }
      method { name: "Upload" input_type: ".p.GetRequest" output_type: ".p.Response" client_streaming: true }
    }
    service {
      name: "Orders"
      method { name: "Get" input_type: ".p.GetRequest" output_type: ".p.Response" }
      method {
        name: "Ping"
        input_type: ".p.Empty"
        output_type: ".p.Response"
        options { idempotency_level: IDEMPOTENT }
      }
    }
  })pb";

inline std::string Serialized(std::string_view text) {
  google::protobuf::FileDescriptorSet set;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(text), &set));
  return set.SerializeAsString();
}

// A file that goes away with this object.
class TestFile {
 public:
  TestFile(const std::string& name, const std::string& bytes)
      : dir_(::testing::TempDir()), name_("sluice_" + std::to_string(getpid()) + "_" + name) {
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  ~TestFile() { std::remove(path().c_str()); }
  const std::string& name() const { return name_; }
  std::string path() const { return dir_ + name_; }

 private:
  const std::string dir_, name_;
};

}  // namespace sluice::config

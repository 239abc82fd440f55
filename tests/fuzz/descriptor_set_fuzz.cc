// Descriptor sets: any bytes are refused with one error or become services, methods and fields that can be asked for.
// What Resolve finds are numbers that a field may have, and it is asked for every field of every input, and for
// nonsense.
//
// The input: the length of a field path, the path, then the set. With the length's high bit the rest is text format
// instead, so that a mutation of a word makes another valid set.
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <string>

#include "base/check.h"
#include "config/descriptor_set.h"
#include "fuzz/support/program.h"
#include "proxy/options.h"

namespace sluice::config {
namespace {

namespace pb = google::protobuf;

class Silent : public pb::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

void Resolve(const DescriptorSet& set, const std::string& message, const std::string& field) {
  const auto numbers = set.Resolve(message, field);
  if (!numbers.ok()) {
    SLUICE_CHECK(numbers.error().kind == base::ErrorKind::kInvalidArgument && !numbers.error().detail.empty());
    return;
  }
  SLUICE_CHECK(!numbers->empty() && numbers->size() <= proxy::kFieldDepthMax);
  for (uint32_t number : *numbers) SLUICE_CHECK(number >= 1 && number < 1u << 29);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Program program(data, size);
  const uint8_t first = program.U8();
  const std::string path(program.Bytes(first & 0x7f));
  std::string bytes(program.Rest());
  pb::FileDescriptorSet message;
  if (first & 0x80) {
    pb::TextFormat::Parser parser;
    Silent silent;
    parser.RecordErrorsTo(&silent);
    parser.AllowPartialMessage(true);
    if (!parser.ParseFromString(bytes, &message)) return 0;
    message.SerializePartialToString(&bytes);
  } else {
    (void)message.ParsePartialFromString(bytes);
  }
  DescriptorSet set;
  const base::Status built = set.Build(bytes);
  if (!built.ok()) {
    SLUICE_CHECK(built.error().kind == base::ErrorKind::kInvalidArgument && !built.error().detail.empty());
    return 0;
  }
  for (const std::string& service : set.services()) {
    for (const DescriptorSet::Method& method : set.Methods(service)) {
      SLUICE_CHECK(method.path == "/" + service + "/" + method.name);
      Resolve(set, method.input, path);
    }
  }
  for (const pb::FileDescriptorProto& file : message.file()) {
    for (const pb::DescriptorProto& type : file.message_type()) {
      const std::string name = file.package().empty() ? type.name() : file.package() + "." + type.name();
      Resolve(set, name, path);
      for (const pb::FieldDescriptorProto& field : type.field()) {
        Resolve(set, name, field.name());
        Resolve(set, name, field.name() + "." + path);
      }
    }
  }
  Resolve(set, path, path);
  SLUICE_CHECK(set.Methods(path + "?").empty());
  return 0;
}

}  // namespace sluice::config

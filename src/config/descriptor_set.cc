// Reading a FileDescriptorSet into a pool of our own: nothing of it reaches the process's generated one.
#include "config/descriptor_set.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "config/suggest.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/options.h"

namespace sluice::config {
namespace {

namespace pb = google::protobuf;
using base::ErrorKind;
using base::MakeError;

constexpr char kHowToMake[] = "made by protoc --include_imports --descriptor_set_out";
constexpr size_t kNamesShownMax = 10;

// Keeps the first mistake; protobuf would write them to stderr.
class FirstError : public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& file, const std::string& element, const pb::Message*, ErrorLocation,
                const std::string& message) override {
    if (text.empty()) text = Cat(file, ": ", element, ": ", message);
  }
  std::string text;
};

// Adds the files to the pool, each after those it imports, in whatever order they come.
class PoolBuilder {
 public:
  PoolBuilder(const pb::FileDescriptorSet& set, pb::DescriptorPool* pool) : set_(set), pool_(pool) {}

  base::Status Run() {
    for (const pb::FileDescriptorProto& file : set_.file()) {
      // Sets that were concatenated hold common imports twice.
      const auto [first, added] = files_.emplace(file.name(), &file);
      if (!added && first->second->SerializeAsString() != file.SerializeAsString())
        return Wrong(Cat("has two different files ", Shown(file.name())));
    }
    for (const pb::FileDescriptorProto& file : set_.file()) {
      if (base::Status added = AddWithImports(file); !added.ok()) return added;
    }
    return base::Ok();
  }

 private:
  static base::Error Wrong(std::string what) { return MakeError(ErrorKind::kInvalidArgument, std::move(what)); }

  // A stack of its own: a chain of imports may be as long as the set.
  base::Status AddWithImports(const pb::FileDescriptorProto& wanted) {
    struct Open {
      const pb::FileDescriptorProto* file;
      int next = 0;  // import to look at
    };
    std::vector<Open> open{{&wanted}};
    while (!open.empty()) {
      Open& top = open.back();
      if (pool_->FindFileByName(top.file->name()) != nullptr) {
        open.pop_back();
        continue;
      }
      if (top.next == top.file->dependency_size()) {
        if (base::Status added = Add(*top.file); !added.ok()) return added;
        continue;
      }
      const std::string& import = top.file->dependency(top.next++);
      const auto found = files_.find(import);
      if (found == files_.end()) {
        return Wrong(
            Cat("lacks ", Shown(import), ", which ", Shown(top.file->name()), " imports; it must be ", kHowToMake));
      }
      // More open than there are files: some file imports itself in the end.
      if (open.size() > files_.size()) return Wrong(Cat(Shown(import), " imports itself"));
      open.push_back({found->second});
    }
    return base::Ok();
  }

  base::Status Add(const pb::FileDescriptorProto& file) {
    FirstError error;
    if (pool_->BuildFileCollectingErrors(file, &error) != nullptr) return base::Ok();
    return Wrong(Cat("is not valid: ", error.text));
  }

  const pb::FileDescriptorSet& set_;
  pb::DescriptorPool* pool_;
  std::map<std::string, const pb::FileDescriptorProto*> files_;
};

// "; did you mean ...?" or "; there are: ...".
std::string Help(std::string_view word, const pb::Descriptor& message) {
  std::vector<std::string_view> names;
  names.reserve(static_cast<size_t>(message.field_count()));
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  if (names.empty()) return "; it has none";
  const std::string_view near = Suggest(word, names);
  if (!near.empty()) return Cat("; did you mean \"", near, "\"?");
  const bool more = names.size() > kNamesShownMax;
  if (more) names.resize(kNamesShownMax);
  return Cat("; there are: ", Join(names), more ? ", ..." : "");
}

}  // namespace

struct DescriptorSet::Impl {
  pb::DescriptorPool pool;
};

DescriptorSet::DescriptorSet() : impl_(std::make_unique<Impl>()) {}
DescriptorSet::~DescriptorSet() = default;

base::Status DescriptorSet::Load(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error) return MakeError(ErrorKind::kIo, Cat("cannot be read: ", error.message()));
  // A pipe would block, a device may have no end.
  if (!std::filesystem::is_regular_file(status)) return MakeError(ErrorKind::kIo, "cannot be read: not a regular file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return MakeError(ErrorKind::kIo, Cat("cannot be read: ", std::strerror(errno)));
  std::string bytes;
  char buffer[64 * 1024];
  while (bytes.size() <= kDescriptorSetBytesMax && (in.read(buffer, sizeof(buffer)) || in.gcount() > 0)) {
    bytes.append(buffer, static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) return MakeError(ErrorKind::kIo, Cat("cannot be read: ", std::strerror(errno)));
  if (bytes.size() > kDescriptorSetBytesMax) {
    return MakeError(ErrorKind::kIo, Cat("has more than ", FormatBytes(kDescriptorSetBytesMax)));
  }
  return Build(bytes);
}

base::Status DescriptorSet::Build(std::string_view bytes) {
  pb::FileDescriptorSet set;
  // Partial: a required field that is missing is an error of ours, not a line on stderr.
  if (bytes.empty() || !set.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      !set.IsInitialized() || set.file_size() == 0) {
    return MakeError(ErrorKind::kInvalidArgument, Cat("is no descriptor set; it must be ", kHowToMake));
  }
  if (base::Status built = PoolBuilder(set, &impl_->pool).Run(); !built.ok()) return built;
  for (const pb::FileDescriptorProto& file : set.file()) {
    const pb::FileDescriptor* built = impl_->pool.FindFileByName(file.name());
    for (int i = 0; i < built->service_count(); ++i) services_.push_back(built->service(i)->full_name());
  }
  std::sort(services_.begin(), services_.end());
  services_.erase(std::unique(services_.begin(), services_.end()), services_.end());
  return base::Ok();
}

std::vector<DescriptorSet::Method> DescriptorSet::Methods(std::string_view service) const {
  std::vector<Method> out;
  const pb::ServiceDescriptor* found = impl_->pool.FindServiceByName(std::string(service));
  for (int i = 0; found != nullptr && i < found->method_count(); ++i) {
    const pb::MethodDescriptor& method = *found->method(i);
    const auto level = method.options().idempotency_level();
    out.push_back({method.name(), Cat("/", service, "/", method.name()), method.input_type()->full_name(),
                   method.client_streaming(), method.server_streaming(), level == pb::MethodOptions::NO_SIDE_EFFECTS,
                   level != pb::MethodOptions::IDEMPOTENCY_UNKNOWN});
  }
  return out;
}

base::Result<std::vector<uint32_t>> DescriptorSet::Resolve(std::string_view message, std::string_view field) const {
  const auto wrong = [](std::string what) { return MakeError(ErrorKind::kInvalidArgument, std::move(what)); };
  const pb::Descriptor* in = impl_->pool.FindMessageTypeByName(std::string(message));
  if (in == nullptr) return wrong(Cat("there is no message ", Shown(message)));
  std::vector<uint32_t> out;
  for (size_t begin = 0; begin <= field.size();) {
    const size_t end = std::min(field.find('.', begin), field.size());
    const std::string_view name = field.substr(begin, end - begin);
    const std::string_view so_far = field.substr(0, end);
    const bool last = end == field.size();
    const pb::FieldDescriptor* found = in->FindFieldByName(std::string(name));
    if (found == nullptr) return wrong(Cat(in->full_name(), " has no field ", Shown(name), Help(name, *in)));
    if (found->is_map()) return wrong(Cat(Shown(so_far), " is a map; a key is one value"));
    if (found->is_repeated()) return wrong(Cat(Shown(so_far), " is repeated; a key is one value"));
    if (found->type() == pb::FieldDescriptor::TYPE_GROUP)
      return wrong(Cat(Shown(so_far), " is a group; these are not read"));
    out.push_back(static_cast<uint32_t>(found->number()));
    if (out.size() > proxy::kFieldDepthMax) {
      return wrong(Cat("is deeper than ", proxy::kFieldDepthMax, " fields"));
    }
    const pb::Descriptor* type = found->message_type();
    if (last && type != nullptr) {
      return wrong(
          Cat(Shown(so_far), " is a message, ", type->full_name(), "; name one of its fields", Help("", *type)));
    }
    if (!last && type == nullptr) return wrong(Cat(Shown(so_far), " is no message and has no fields"));
    in = type;
    begin = end + 1;
  }
  return out;
}

}  // namespace sluice::config

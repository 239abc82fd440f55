#include "server/state_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "base/log.h"

namespace sluice::server {
namespace {

using base::ErrorKind;
using base::MakeError;

base::Error IoError(const std::string& step, const std::string& path) {
  return MakeError(ErrorKind::kIo, "state file: cannot " + step + " " + path + ": " + std::strerror(errno));
}

// Closes on every path.
struct File {
  explicit File(int f) : fd(f) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

// New file beside the old, fsync, rename over it, fsync of the folder: after a crash there is the old one or the new one.
base::Status SaveState(const std::string& path, const SavedLists& lists) {
  YAML::Emitter out;
  out << YAML::Comment("Endpoint lists changed through the admin RPC. Written by sluiced; remove it to go back to the configuration.");
  out << YAML::BeginMap << YAML::Key << "clusters" << YAML::Value << YAML::BeginMap;
  for (const auto& [name, list] : lists) {
    out << YAML::Key << name << YAML::Value << YAML::BeginMap;
    out << YAML::Key << "configured" << YAML::Value << list.configured;
    out << YAML::Key << "endpoints" << YAML::Value << YAML::BeginSeq;
    for (const upstream::WantedEndpoint& endpoint : list.endpoints) {
      out << YAML::Flow << YAML::BeginMap << YAML::Key << "name" << YAML::Value << endpoint.name << YAML::Key << "address"
          << YAML::Value << endpoint.address.ToString() << YAML::Key << "weight" << YAML::Value << endpoint.weight
          << YAML::Key << "draining" << YAML::Value << endpoint.draining << YAML::EndMap;
    }
    out << YAML::EndSeq << YAML::EndMap;
  }
  out << YAML::EndMap << YAML::EndMap;

  std::string temporary = path + ".new";
  // A part of a file, on a disk that may be full, helps nobody.
  auto failed = [&temporary](const std::string& step, const std::string& what) {
    auto error = IoError(step, what);  // before errno is another's
    ::unlink(temporary.c_str());
    return error;
  };
  {
    File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.fd < 0) return IoError("create", temporary);
    if (!WriteAll(file.fd, std::string_view(out.c_str(), out.size())) || !WriteAll(file.fd, "\n")) return failed("write", temporary);
    if (::fsync(file.fd) != 0) return failed("fsync", temporary);
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  File directory(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd < 0) return failed("open the folder of", path);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("rename to", path);
  // Too late to refuse: whoever reads the file finds the new one. Some file systems cannot do it at all (EINVAL).
  if (::fsync(directory.fd) != 0 && errno != EINVAL) {
    const base::Error error = IoError("fsync the folder of", path);  // before errno is the log's
    SLUICE_LOG_WARN("{}; after a power failure there may be the former file", error.detail);
  }
  return base::Ok();
}

base::Result<SavedLists> LoadState(const std::string& path) {
  SavedLists lists;
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return lists;
  try {
    YAML::Node root = YAML::LoadFile(path);
    if (!root.IsMap() || !root["clusters"].IsMap()) {
      return MakeError(ErrorKind::kIo, "state file " + path + ":1: this is no state file; mend it, or remove it to go back to the configuration");
    }
    for (const auto& cluster : root["clusters"]) {
      SavedList list;
      list.configured = cluster.second["configured"].as<uint64_t>();
      const YAML::Node endpoints = cluster.second["endpoints"];
      if (!endpoints.IsSequence()) {  // a list that was lost is not an empty list
        return MakeError(ErrorKind::kIo, "state file " + path + ":" + std::to_string(cluster.first.Mark().line + 1) + ": no endpoints");
      }
      for (const YAML::Node& node : endpoints) {
        auto address = net::Address::Parse(node["address"].as<std::string>());
        if (!address) {
          return MakeError(ErrorKind::kIo, "state file " + path + ":" + std::to_string(node.Mark().line + 1) + ": " + address.error().detail);
        }
        list.endpoints.push_back({node["name"].as<std::string>(), *address, node["weight"].as<double>(), node["draining"].as<bool>()});
      }
      lists[cluster.first.as<std::string>()] = std::move(list);
    }
  } catch (const YAML::Exception& e) {  // the library's way to say so; it does not leave this function
    return MakeError(ErrorKind::kIo, "state file " + path + ":" + std::to_string(e.mark.line + 1) + ": " + e.msg +
                                         "; mend it, or remove it to go back to the configuration");
  }
  return lists;
}

uint64_t Fingerprint(const std::vector<upstream::EndpointOptions>& endpoints) {
  // A sum does not depend on the order, and the hashes are well mixed.
  uint64_t sum = endpoints.size();
  for (const upstream::EndpointOptions& e : endpoints) {
    sum += base::Hash64(e.name + '\0' + e.address.ToString() + '\0' + std::to_string(e.weight));
  }
  return sum;
}

}  // namespace sluice::server

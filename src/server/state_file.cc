#include "server/state_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "base/log.h"

namespace sluice::server {
namespace {

using base::ErrorKind;
using base::MakeError;

base::Error IoError(const std::string& step, const std::string& path) {
  return MakeError(ErrorKind::kIo, "state file: cannot " + step + " " + path + ": " + std::strerror(errno));
}

// `line` 0: not known.
base::Error Broken(const std::string& path, int line, const std::string& why) {
  return MakeError(ErrorKind::kInvalidArgument,
                   "state file " + path + (line > 0 ? ":" + std::to_string(line) : "") + ": " + why);
}

base::Result<std::string> ReadAll(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 64 * 1024> chunk;
  while (in.read(chunk.data(), chunk.size()) || in.gcount() > 0)
    text.append(chunk.data(), static_cast<size_t>(in.gcount()));
  if (in.bad() || !in.is_open()) return IoError("read", path);
  return text;
}

// Closes on every path.
struct File {
  explicit File(int f) : fd(f) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

// As a double-quoted scalar. What is not plain ASCII, the library spells: YAML has rules for it.
void AppendQuoted(std::string& out, const std::string& text) {
  if (std::any_of(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; })) {
    YAML::Emitter quoted;
    quoted << YAML::DoubleQuoted << text;
    out.append(quoted.c_str(), quoted.size());
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

// The shortest text that reads back as the same number.
void AppendNumber(std::string& out, double number) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

// By hand: a change of a list of 10,000 endpoints writes it all, and the library's emitter takes 200 ms for that, 20
// times as long.
std::string ToYaml(const SavedLists& lists) {
  std::string out =
      "# Endpoint lists changed through the admin RPC, and last ones of sources. Written by sluiced; remove it to go "
      "back to the configuration.\nclusters:";
  if (lists.empty()) out += " {}";
  out += '\n';
  for (const auto& [name, list] : lists) {
    out += "  ";
    AppendQuoted(out, name);
    out.append(":\n    configured: ").append(std::to_string(list.configured));
    if (list.source == upstream::ListSource::kDiscovery)
      out.append("\n    discovered: ").append(std::to_string(list.at));
    out.append("\n    endpoints:");
    if (list.endpoints.empty()) out += " []";
    out += '\n';
    for (const upstream::WantedEndpoint& endpoint : list.endpoints) {
      out += "      - {name: ";
      AppendQuoted(out, endpoint.name);
      out += ", address: ";
      AppendQuoted(out, endpoint.address.ToString());
      out += ", weight: ";
      AppendNumber(out, endpoint.weight);
      out += endpoint.draining ? ", draining: true" : ", draining: false";
      if (endpoint.standing.priority != 0)
        out.append(", priority: ").append(std::to_string(endpoint.standing.priority));
      if (!endpoint.standing.locality.empty()) {
        out += ", locality: ";
        AppendQuoted(out, endpoint.standing.locality);
      }
      out += "}\n";
    }
  }
  return out;
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// The daemon's own file for its own user: what another user has put at the path, a link for one, is never written
// through. A file that an earlier process has left is removed first. -1: errno says why.
int CreateNew(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int fd = ::open(path.c_str(), kFlags, 0600);
  if (fd >= 0 || errno != EEXIST) return fd;
  if (::unlink(path.c_str()) != 0) return -1;
  return ::open(path.c_str(), kFlags, 0600);
}

}  // namespace

// New file beside the old, fsync, rename over it, fsync of the folder: after a crash there is the old one or the new
// one.
base::Status SaveState(const std::string& path, const SavedLists& lists) {
  const std::string text = ToYaml(lists);
  std::string temporary = path + ".new";
  // A part of a file is of no use, and the disk may be full.
  auto failed = [&temporary](const std::string& step, const std::string& what) {
    auto error = IoError(step, what);  // before errno is another's
    ::unlink(temporary.c_str());
    return error;
  };
  {
    File file(CreateNew(temporary));
    if (file.fd < 0) return IoError("create", temporary);
    if (!WriteAll(file.fd, text)) return failed("write", temporary);
    if (::fsync(file.fd) != 0) return failed("fsync", temporary);
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  File directory(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd < 0) return failed("open the folder of", path);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("rename to", path);
  // Too late to refuse: readers of the file find the new one. Some file systems cannot do it at all (EINVAL).
  if (::fsync(directory.fd) != 0 && errno != EINVAL) {
    const base::Error error = IoError("fsync the folder of", path);  // before errno is the log's
    SLUICE_LOG_WARN("{}; after a power failure there may be the former file", error.detail);
  }
  return base::Ok();
}

base::Result<SavedLists> LoadState(const std::string& path) {
  SavedLists lists;
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return lists;
  auto text = ReadAll(path);  // not LoadFile, which leaks where the file cannot be read
  if (!text) return text.error();
  try {
    YAML::Node root = YAML::Load(*text);
    if (!root.IsMap() || !root["clusters"].IsMap()) {
      return Broken(path, 1, "this is no state file");
    }
    for (const auto& cluster : root["clusters"]) {
      SavedList list;
      list.configured = cluster.second["configured"].as<uint64_t>();
      if (const YAML::Node discovered = cluster.second["discovered"]) {
        list.source = upstream::ListSource::kDiscovery;
        list.at = discovered.as<int64_t>();
      }
      const YAML::Node endpoints = cluster.second["endpoints"];
      if (!endpoints.IsSequence()) {  // a list that was lost is not an empty list
        return Broken(path, cluster.first.Mark().line + 1, "no endpoints");
      }
      for (const YAML::Node& node : endpoints) {
        auto address = net::Address::Parse(node["address"].as<std::string>());
        if (!address) {
          return Broken(path, node.Mark().line + 1, address.error().detail);
        }
        upstream::Standing standing;
        if (node["priority"]) standing.priority = node["priority"].as<uint32_t>();
        if (node["locality"]) standing.locality = node["locality"].as<std::string>();
        list.endpoints.push_back({node["name"].as<std::string>(),
                                  *address,
                                  node["weight"].as<double>(),
                                  node["draining"].as<bool>(),
                                  {},
                                  std::move(standing)});
      }
      lists[cluster.first.as<std::string>()] = std::move(list);
    }
  } catch (const YAML::Exception& e) {  // the library's way to say so; it does not leave this function
    return Broken(path, e.mark.is_null() ? 0 : e.mark.line + 1, e.msg);
  }
  return lists;
}

base::Result<SavedLists> LoadStateOrSetAside(const std::string& path) {
  auto loaded = LoadState(path);
  if (loaded || loaded.error().kind != ErrorKind::kInvalidArgument) return loaded;
  // An earlier one stays: it may be the only copy of what was lost then.
  constexpr int kAsideMax = 9;
  std::string aside = path + ".bad";
  for (int i = 2; i <= kAsideMax && ::access(aside.c_str(), F_OK) == 0; ++i) aside = path + ".bad." + std::to_string(i);
  const bool renamed = ::rename(path.c_str(), aside.c_str()) == 0;
  SLUICE_LOG_ERROR(
      "{}; {}; lists changed by RPC are lost, the configuration's are in force", loaded.error().detail,
      renamed ? "it is set aside as " + aside : "it cannot be set aside: " + std::string(std::strerror(errno)));
  return SavedLists();
}

int64_t UnixSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

uint64_t FirstListVersion() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

uint64_t Fingerprint(const std::vector<upstream::EndpointOptions>& endpoints, const std::string& discovery) {
  if (!discovery.empty()) return base::Hash64("discovery" + discovery);
  // A sum does not depend on the order, and the hashes are well mixed.
  uint64_t sum = endpoints.size();
  for (const upstream::EndpointOptions& e : endpoints) {
    std::string text = e.name + '\0' + e.address.ToString() + '\0' + std::to_string(e.weight);
    // Without them it is what former releases have written.
    if (e.priority != 0 || !e.locality.empty()) text += '\0' + std::to_string(e.priority) + '\0' + e.locality;
    sum += base::Hash64(text);
  }
  return sum;
}

}  // namespace sluice::server

#include "net/passed_sockets.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace sluice::net {
namespace {

constexpr size_t kNameMax = 255;  // of systemd

std::optional<int> ReadNumber(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size()) return std::nullopt;
  return value;
}

// The names between the colons; what is missing is empty.
std::vector<std::string> SplitNames(const char* names, size_t count) {
  std::vector<std::string> out;
  std::string_view rest(names != nullptr ? names : "");
  while (out.size() < count) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    out.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return out;
}

}  // namespace

std::optional<std::string> PassedSockets::NameOfKept(const Address& address) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./-_";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string name(kKept);
  for (const char c : address.ToString()) {
    if (kPlain.find(c) != kPlain.npos) {
      name += c;
    } else {
      name += '%';
      name += kHex[static_cast<unsigned char>(c) >> 4];
      name += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  if (name.size() > kNameMax) return std::nullopt;
  return name;
}

base::Result<PassedSockets> PassedSockets::Take(const char* pid, const char* fds, const char* names, int self,
                                                int first) {
  PassedSockets out;
  if (ReadNumber(pid) != self || fds == nullptr) return out;
  const auto count = ReadNumber(fds);
  if (!count || *count < 0 || *count > kMax) {
    return base::MakeError(base::ErrorKind::kInvalidArgument,
                           "LISTEN_FDS is \"" + std::string(fds) + "\": a number from 0 to 1024 is allowed");
  }
  std::vector<std::string> named = SplitNames(names, static_cast<size_t>(*count));
  for (int i = 0; i < *count; ++i) ::fcntl(first + i, F_SETFD, FD_CLOEXEC);
  base::Status failed = base::Ok();
  for (int i = 0; i < *count; ++i) {
    std::string& name = named[static_cast<size_t>(i)];
    auto socket = ListenSocket::Adopt(first + i, std::string_view(name).starts_with(kKept));
    if (!socket) {
      failed = base::MakeError(
          base::ErrorKind::kInvalidArgument,
          "socket " + std::to_string(i + 1) + " that was passed (\"" + name + "\"): " + socket.error().detail);
      continue;
    }
    out.sockets_.push_back({std::move(name), std::move(*socket)});
  }
  if (!failed.ok()) return failed.error();
  return out;
}

std::optional<ListenSocket> PassedSockets::Find(const Address& address, std::string_view name,
                                                const ListenSocket::Options& options) {
  auto found = std::ranges::find_if(sockets_, [&](const Socket& s) { return s.socket.address() == address; });
  if (found == sockets_.end())
    found = std::ranges::find_if(sockets_, [&](const Socket& s) { return !s.kept() && s.name == name; });
  if (found == sockets_.end()) return std::nullopt;
  ListenSocket socket = std::move(found->socket);
  sockets_.erase(found);
  (void)socket.Apply(options);  // it listens, whatever its queue
  return socket;
}

std::string PassedSockets::Strangers() const {
  std::string out;
  for (const Socket& s : sockets_) {
    if (s.kept()) continue;
    if (!out.empty()) out += ", ";
    out += s.name;
    out += " (";
    out += s.socket.address().ToString();
    out += ")";
  }
  return out;
}

std::vector<std::string> PassedSockets::DropKept() {
  std::vector<std::string> names;
  for (const Socket& s : sockets_) {
    if (s.kept()) names.push_back(s.name);
  }
  std::erase_if(sockets_, [](const Socket& s) { return s.kept(); });
  return names;
}

}  // namespace sluice::net

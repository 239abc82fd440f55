// PassedSockets: the listening sockets that the process was started with, by a supervisor that made them or has kept
// them over the process before: sd_listen_fds(3).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "net/address.h"
#include "net/listen_socket.h"

namespace sluice::net {

// Not thread-safe.
class PassedSockets {
 public:
  static constexpr int kFirst = 3;   // SD_LISTEN_FDS_START
  static constexpr int kMax = 1024;  // sockets
  // Name of those that this daemon has given its supervisor to keep (FDNAME), followed by their address.
  static constexpr std::string_view kKept = "sluice-kept-";

  // FDNAME of a kept socket: kKept and the address; bytes but letters, digits and "./-_" as %XX. nullopt: over 255
  // bytes.
  static std::optional<std::string> NameOfKept(const Address& address);

  // No sockets.
  PassedSockets() = default;
  // By the values of LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES (null: not set). None where they are not for the process
  // `self`. Owns the descriptors from `first` on, which no child inherits any more. kInvalidArgument names what is no
  // stream socket that listens.
  static base::Result<PassedSockets> Take(const char* pid, const char* fds, const char* names, int self,
                                          int first = kFirst);
  PassedSockets(PassedSockets&&) noexcept = default;
  PassedSockets& operator=(PassedSockets&&) noexcept = default;

  // The one that listens on `address`, or, else, the one called `name`.
  std::optional<ListenSocket> Find(const Address& address, std::string_view name, const ListenSocket::Options& options);
  // "NAME (ADDRESS)" of those that are left and were not kept by this daemon, joined by commas; empty: none.
  std::string Strangers() const;
  // Closes those that were kept and are left; their names.
  std::vector<std::string> DropKept();

 private:
  struct Socket {
    std::string name;
    ListenSocket socket;
    bool kept() const { return std::string_view(name).starts_with(kKept); }
  };
  std::vector<Socket> sockets_;
};

}  // namespace sluice::net

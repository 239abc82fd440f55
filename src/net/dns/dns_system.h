// DnsSystem: what the system says of names before a server is asked: /etc/hosts, the servers and the search domains of
// resolv.conf(5); and c-ares' channel, which is made of them.
//
// One thread at a time. It reads files: only inside Runtime::Block, but for NamesFor and the destructor.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

struct ares_addrinfo;
struct ares_channeldata;

namespace sluice::net {

struct DnsSettings {
  // "10.0.0.2", "10.0.0.2:5353", "[::1]:5353"; none: the system's.
  std::vector<std::string> servers;
  // For one attempt at one server; doubled with each round of them. Each is asked `tries` times.
  std::chrono::milliseconds timeout{1000};
  int tries = 2;
  std::string resolv_conf;  // empty: the system's
};

class DnsSystem {
 public:
  // What an answer may have without TCP: no path of the internet breaks it into pieces (RFC 6891, DNS flag day 2020).
  static constexpr int kUdpBytesMax = 1232;
  // Of a name, with the name itself.
  static constexpr size_t kNamesMax = 8;

  // Told of the sockets of c-ares: what it waits for at each. Neither: it is about to be closed.
  class SocketWatcher {
   public:
    virtual void OnSocket(int fd, bool readable, bool writable) = 0;

   protected:
    ~SocketWatcher() = default;
  };

  // kIo: the system's files, or the servers, cannot be used.
  static base::Result<std::unique_ptr<DnsSystem>> Read(const DnsSettings& settings);
  ~DnsSystem();
  DnsSystem(const DnsSystem&) = delete;
  DnsSystem& operator=(const DnsSystem&) = delete;

  // The addresses of a name in /etc/hosts, in its order; localhost has some always (RFC 6761 6.3).
  static std::vector<std::string> InHosts(const std::string& name);
  // The full names that `name` stands for, in the order in which they are to be asked for: search domains are tried
  // behind a name with enough dots (`ndots`), before another, and not at all where there is a closing dot.
  std::vector<std::string> NamesFor(const std::string& name) const;

  ares_channeldata* ares() const { return ares_; }
  // As text, each once. Frees `found`, which may be null.
  static std::vector<std::string> TakeAddresses(ares_addrinfo* found);
  // Null: none. It is told by the thread that uses ares().
  void Watch(SocketWatcher* watcher) { watcher_ = watcher; }

 private:
  DnsSystem() = default;
  static void OnSocketState(void* system, int fd, int readable, int writable);

  ares_channeldata* ares_ = nullptr;
  SocketWatcher* watcher_ = nullptr;
};

}  // namespace sluice::net

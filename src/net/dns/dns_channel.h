// DnsChannel: questions to DNS servers, by c-ares, on the reactor of one worker. A truncated answer is asked for again
// over TCP; a server that is silent, or fails, gives way to the next one (resolv.conf(5)).
//
// Lives and dies on its worker. c-ares goes by the system's steady clock, not by the worker's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/dns/dns_reply.h"
#include "net/dns/dns_system.h"
#include "runtime/timer_wheel.h"
#include "runtime/worker.h"

struct ares_addrinfo;

namespace sluice::net {

class DnsChannel final : private runtime::Timer, private DnsSystem::SocketWatcher {
 public:
  // Rounds of reading one socket in a turn of the worker.
  static constexpr int kRoundsMax = 16;

  explicit DnsChannel(std::unique_ptr<DnsSystem> system);
  // No `done` is called any more. Not from inside one.
  ~DnsChannel();

  // `name`: a full one. `done` is called once, perhaps at once, and bounded by the settings' timeout and tries.
  using Done = std::function<void(DnsReply)>;
  void Ask(const std::string& name, DnsType type, Done done);
  // The addresses of a host of one family (AF_INET, AF_INET6), by its name and the search domains, the best first (RFC
  // 6724); at least one. kNotFound: the servers have none, or no use for the question; kConnectFailed: none has
  // answered in time.
  using Resolved = std::function<void(base::Result<std::vector<std::string>>)>;
  void Resolve(const std::string& host, int family, Resolved done);

 private:
  class Socket;
  struct Question;
  struct Name;
  static void OnAnswer(void* question, int status, int timeouts, unsigned char* message, int bytes);
  static void OnResolved(void* question, int status, int timeouts, ares_addrinfo* found);
  void OnSocket(int fd, bool readable, bool writable) override;
  void OnTimer(base::TimePoint now) override;
  void Process(int fd, bool readable, bool writable);
  void ArmTimer();

  runtime::Worker& worker_;
  const std::unique_ptr<DnsSystem> system_;
  std::map<int, std::unique_ptr<Socket>> sockets_;
  bool closing_ = false;  // c-ares may tell of an answer that is there by half when it is cancelled
};

}  // namespace sluice::net

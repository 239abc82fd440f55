// DnsServer: a small DNS server on loopback, UDP and TCP, on a thread of its own: records that a test changes at any
// time, and failures of every kind. Unknown names get NXDOMAIN, known ones without such records NODATA.
//
// Thread safety: every function from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::test {

// Types of records and codes of answers (RFC 1035 3.2.2 and 4.1.1, RFC 3596, RFC 2782).
enum : uint16_t { kDnsA = 1, kDnsCname = 5, kDnsAaaa = 28, kDnsSrv = 33 };
enum : uint8_t { kDnsServFail = 2, kDnsNxDomain = 3, kDnsRefused = 5 };

// A name as it is sent, without compression; "" and ".": the root.
std::string DnsName(std::string_view name);
// Big-endian.
std::string DnsNumber(uint32_t value, int bytes);

// A record, as it is sent but for its owner.
struct DnsRecord {
  uint16_t type = kDnsA;
  uint32_t ttl = 60;
  std::string data;

  static DnsRecord Address(const std::string& ip, uint32_t ttl = 60);  // A or AAAA
  static DnsRecord Cname(std::string_view to, uint32_t ttl = 60) { return {kDnsCname, ttl, DnsName(to)}; }
  static DnsRecord Srv(uint16_t priority, uint16_t weight, uint16_t port, std::string_view host, uint32_t ttl = 60);
};
// An answer to a question for `name`: records of others in front are aliases. With the question, without EDNS.
std::string DnsMessage(std::string_view name, uint16_t type,
                       const std::vector<std::pair<std::string, DnsRecord>>& answers, uint8_t code = 0,
                       uint16_t id = 0);

class DnsServer {
 public:
  explicit DnsServer(std::string host = "127.0.0.1");
  ~DnsServer();
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;

  uint16_t port() const { return port_; }
  std::string address() const { return host_ + ":" + std::to_string(port_); }

  // In the place of all that there was of the name.
  void Set(const std::string& name, std::vector<DnsRecord> records);
  void SetAddresses(const std::string& name, const std::vector<std::string>& ips, uint32_t ttl = 60);
  void Remove(const std::string& name);
  // Questions for this name and type get this code, or no answer.
  void Fail(const std::string& name, uint16_t type, uint8_t code = kDnsServFail);
  void Silence(const std::string& name, uint16_t type);
  void Mend(const std::string& name, uint16_t type);
  // All answers by UDP are truncated.
  void TruncateAll(bool truncate);

  // Questions for the name and type so far; of them by TCP.
  int asked(const std::string& name, uint16_t type) const;
  int asked_by_tcp() const;
  int asked() const;

 private:
  struct Behaviour {
    bool silent = false;
    uint8_t code = 0;
  };
  struct Connection {
    int fd;
    std::string received;
  };
  using Key = std::pair<std::string, uint16_t>;

  bool Listen();
  void Run();
  void OnUdp();
  // False: it is over.
  bool OnTcp(Connection& connection);
  // Empty: none.
  std::string Answer(std::string_view question, bool tcp);

  const std::string host_;
  uint16_t port_ = 0;
  int udp_ = -1, listener_ = -1, stop_[2] = {-1, -1};
  std::vector<Connection> connections_;

  mutable std::mutex mutex_;
  std::map<std::string, std::vector<DnsRecord>> zone_;
  std::map<Key, Behaviour> behaviour_;
  std::map<Key, int> asked_;
  int tcp_ = 0, all_ = 0;
  bool truncate_ = false;

  std::thread thread_;
};

}  // namespace sluice::test

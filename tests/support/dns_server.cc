#include "support/dns_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace sluice::test {

namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kPlainUdpBytes = 512;  // RFC 1035 4.2.1
constexpr uint16_t kOpt = 41;           // RFC 6891
constexpr int kAliasesMax = 16;

uint16_t U16(std::string_view bytes, size_t at) {
  if (at + 2 > bytes.size()) return 0;
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) << 8 | static_cast<uint8_t>(bytes[at + 1]));
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// The name at `at`, which is moved behind it. Questions are not compressed.
std::string ReadName(std::string_view bytes, size_t& at) {
  std::string name;
  while (at < bytes.size() && bytes[at] != 0) {
    const size_t length = static_cast<uint8_t>(bytes[at]);
    name += (name.empty() ? "" : ".") + std::string(bytes.substr(at + 1, length));
    at += 1 + length;
  }
  ++at;
  return Lower(name);
}

// The name of the question, which most answers have, stands behind the header.
std::string TextOf(std::string_view question, const std::string& name, const DnsRecord& record) {
  return (name == question ? DnsNumber(0xc000 | kHeaderBytes, 2) : DnsName(name)) + DnsNumber(record.type, 2) +
         DnsNumber(1, 2) + DnsNumber(record.ttl, 4) + DnsNumber(static_cast<uint32_t>(record.data.size()), 2) +
         record.data;
}

sockaddr_in At(const std::string& host, uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &at.sin_addr);
  return at;
}

}  // namespace

std::string DnsNumber(uint32_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string DnsName(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const std::string_view label = name.substr(0, name.find('.'));
    if (!label.empty()) out += static_cast<char>(label.size()) + std::string(label);
    name.remove_prefix(std::min(name.size(), label.size() + 1));
  }
  return out + '\0';
}

DnsRecord DnsRecord::Address(const std::string& ip, uint32_t ttl) {
  const bool v6 = ip.find(':') != std::string::npos;
  unsigned char bytes[sizeof(in6_addr)];
  if (::inet_pton(v6 ? AF_INET6 : AF_INET, ip.c_str(), bytes) != 1) std::abort();
  return {v6 ? kDnsAaaa : kDnsA, ttl, std::string(reinterpret_cast<char*>(bytes), v6 ? 16 : 4)};
}

DnsRecord DnsRecord::Srv(uint16_t priority, uint16_t weight, uint16_t port, std::string_view host, uint32_t ttl) {
  return {kDnsSrv, ttl, DnsNumber(priority, 2) + DnsNumber(weight, 2) + DnsNumber(port, 2) + DnsName(host)};
}

std::string DnsMessage(std::string_view name, uint16_t type,
                       const std::vector<std::pair<std::string, DnsRecord>>& answers, uint8_t code, uint16_t id) {
  // A response, recursion wished and to be had.
  std::string out = DnsNumber(id, 2) + DnsNumber(0x8180u | code, 2) + DnsNumber(1, 2) +
                    DnsNumber(static_cast<uint32_t>(answers.size()), 2) + DnsNumber(0, 4) + DnsName(name) +
                    DnsNumber(type, 2) + DnsNumber(1, 2);
  for (const auto& [owner, record] : answers) out += TextOf(name, owner, record);
  return out;
}

DnsServer::DnsServer(std::string host) : host_(std::move(host)) {
  // Both sockets have the same port: another process may have that of TCP.
  bool listens = false;
  for (int i = 0; i < 100 && !listens; ++i) listens = Listen();
  if (!listens || ::pipe(stop_) != 0) {
    std::fprintf(stderr, "a DNS server cannot listen on %s\n", host_.c_str());
    std::abort();
  }
  thread_ = std::thread([this] { Run(); });
}

DnsServer::~DnsServer() {
  ::close(stop_[1]);
  thread_.join();
  for (const Connection& connection : connections_) ::close(connection.fd);
  for (const int fd : {udp_, listener_, stop_[0]}) ::close(fd);
}

bool DnsServer::Listen() {
  sockaddr_in at = At(host_, 0);
  socklen_t length = sizeof at;
  udp_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (::bind(udp_, reinterpret_cast<sockaddr*>(&at), length) == 0 &&
      ::getsockname(udp_, reinterpret_cast<sockaddr*>(&at), &length) == 0 &&
      ::bind(listener_, reinterpret_cast<sockaddr*>(&at), length) == 0 && ::listen(listener_, 64) == 0) {
    port_ = ntohs(at.sin_port);
    return true;
  }
  ::close(udp_);
  ::close(listener_);
  return false;
}

void DnsServer::Set(const std::string& name, std::vector<DnsRecord> records) {
  std::lock_guard lock(mutex_);
  zone_[Lower(name)] = std::move(records);
}

void DnsServer::SetAddresses(const std::string& name, const std::vector<std::string>& ips, uint32_t ttl) {
  std::vector<DnsRecord> records;
  for (const std::string& ip : ips) records.push_back(DnsRecord::Address(ip, ttl));
  Set(name, std::move(records));
}

void DnsServer::Remove(const std::string& name) {
  std::lock_guard lock(mutex_);
  zone_.erase(Lower(name));
}

void DnsServer::Fail(const std::string& name, uint16_t type, uint8_t code) {
  std::lock_guard lock(mutex_);
  behaviour_[{Lower(name), type}] = {false, code};
}

void DnsServer::Silence(const std::string& name, uint16_t type) {
  std::lock_guard lock(mutex_);
  behaviour_[{Lower(name), type}] = {true, 0};
}

void DnsServer::Mend(const std::string& name, uint16_t type) {
  std::lock_guard lock(mutex_);
  behaviour_.erase({Lower(name), type});
}

void DnsServer::TruncateAll(bool truncate) {
  std::lock_guard lock(mutex_);
  truncate_ = truncate;
}

int DnsServer::asked(const std::string& name, uint16_t type) const {
  std::lock_guard lock(mutex_);
  const auto it = asked_.find({Lower(name), type});
  return it == asked_.end() ? 0 : it->second;
}

int DnsServer::asked_by_tcp() const {
  std::lock_guard lock(mutex_);
  return tcp_;
}

int DnsServer::asked() const {
  std::lock_guard lock(mutex_);
  return all_;
}

void DnsServer::Run() {
  for (;;) {
    std::vector<pollfd> polled = {{stop_[0], POLLIN, 0}, {udp_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Connection& connection : connections_) polled.push_back({connection.fd, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[0].revents != 0) return;
    for (size_t i = connections_.size(); i-- > 0;) {
      if (polled[3 + i].revents == 0 || OnTcp(connections_[i])) continue;
      ::close(connections_[i].fd);
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (polled[1].revents != 0) OnUdp();
    if (polled[2].revents != 0) {
      if (const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0)
        connections_.push_back({fd, {}});
    }
  }
}

void DnsServer::OnUdp() {
  char buffer[4096];
  sockaddr_in from{};
  for (;;) {
    socklen_t length = sizeof from;
    const ssize_t got = ::recvfrom(udp_, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &length);
    if (got < 0) return;
    const std::string answer = Answer({buffer, static_cast<size_t>(got)}, false);
    if (!answer.empty()) ::sendto(udp_, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), length);
  }
}

bool DnsServer::OnTcp(Connection& connection) {
  char buffer[4096];
  const ssize_t got = ::recv(connection.fd, buffer, sizeof buffer, MSG_DONTWAIT);
  if (got <= 0) return false;
  connection.received.append(buffer, static_cast<size_t>(got));
  // RFC 1035 4.2.2: each message has its length in front.
  while (connection.received.size() >= 2) {
    const size_t bytes = U16(connection.received, 0);
    if (connection.received.size() < 2 + bytes) break;
    const std::string answer = Answer(std::string_view(connection.received).substr(2, bytes), true);
    connection.received.erase(0, 2 + bytes);
    if (answer.empty()) continue;
    const std::string framed = DnsNumber(static_cast<uint32_t>(answer.size()), 2) + answer;
    if (::send(connection.fd, framed.data(), framed.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(framed.size()))
      return false;
  }
  return true;
}

std::string DnsServer::Answer(std::string_view question, bool tcp) {
  if (question.size() < kHeaderBytes) return {};
  size_t at = kHeaderBytes;
  const std::string name = ReadName(question, at);
  const uint16_t id = U16(question, 0), type = U16(question, at);
  // The OPT record behind the question: the root's name, its type, what an answer may have.
  const bool edns = U16(question, 10) == 1 && U16(question, at + 5) == kOpt;
  const size_t room = edns ? std::max<size_t>(kPlainUdpBytes, U16(question, at + 7)) : kPlainUdpBytes;

  std::lock_guard lock(mutex_);
  ++asked_[{name, type}];
  ++all_;
  tcp_ += tcp ? 1 : 0;
  if (const auto it = behaviour_.find({name, type}); it != behaviour_.end())
    return it->second.silent ? std::string() : DnsMessage(name, type, {}, it->second.code, id);
  std::vector<std::pair<std::string, DnsRecord>> answers;
  std::string owner = name;
  bool known = false;
  for (int aliases = 0; aliases < kAliasesMax; ++aliases) {
    const auto it = zone_.find(owner);
    if (it == zone_.end()) break;
    known = true;
    std::string alias;
    for (const DnsRecord& record : it->second) {
      if (record.type == type || record.type == kDnsCname) answers.emplace_back(owner, record);
      size_t begin = 0;
      if (record.type == kDnsCname) alias = ReadName(record.data, begin);
    }
    if (alias.empty()) break;
    owner = alias;
  }
  std::string message = DnsMessage(name, type, answers, known ? 0 : kDnsNxDomain, id);
  if (!tcp && (truncate_ || message.size() > room)) {
    message = DnsMessage(name, type, {}, 0, id);
    message[2] |= 2;  // TC
  }
  return message;
}

}  // namespace sluice::test

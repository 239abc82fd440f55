#include "net/dns/dns_system.h"

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

namespace sluice::net {

using base::ErrorKind;
using base::MakeError;

namespace {

constexpr size_t kNameBytesMax = 253;  // RFC 1035 2.3.4, as text

// For /etc/hosts alone, which it reads each time; null: there is no memory. Made once a thread: c-ares initialises 80
// KB for a channel, and each dial to a name has one for the servers besides.
ares_channeldata* FilesChannel() {
  struct Destroy {
    void operator()(ares_channeldata* channel) const { ares_destroy(channel); }
  };
  static thread_local std::unique_ptr<ares_channeldata, Destroy> channel;
  if (channel != nullptr) return channel.get();
  std::string files_only = "f";
  ares_options options{};
  options.lookups = files_only.data();
  options.timeout = options.tries = options.ndots = 1;
  // No servers, domains or sort list: where all of these are given, c-ares does not read resolv.conf(5) and its like,
  // which DnsSystem::Read does.
  constexpr int kAll = ARES_OPT_LOOKUPS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_SERVERS |
                       ARES_OPT_DOMAINS | ARES_OPT_SORTLIST;
  ares_channeldata* made = nullptr;
  if (ares_init_options(&made, &options, kAll) == ARES_SUCCESS) channel.reset(made);
  return channel.get();
}

}  // namespace

std::vector<std::string> DnsSystem::TakeAddresses(ares_addrinfo* found) {
  std::vector<std::string> addresses;
  std::unordered_set<std::string> known;  // an answer by TCP has room for some 4000
  if (found == nullptr) return addresses;
  for (const ares_addrinfo_node* node = found->nodes; node != nullptr; node = node->ai_next) {
    char text[INET6_ADDRSTRLEN] = "";
    const void* address = node->ai_family == AF_INET6
                              ? static_cast<const void*>(&reinterpret_cast<sockaddr_in6*>(node->ai_addr)->sin6_addr)
                              : &reinterpret_cast<sockaddr_in*>(node->ai_addr)->sin_addr;
    if (::inet_ntop(node->ai_family, address, text, sizeof text) == nullptr) continue;
    if (known.emplace(text).second) addresses.emplace_back(text);
  }
  ares_freeaddrinfo(found);
  return addresses;
}

base::Result<std::unique_ptr<DnsSystem>> DnsSystem::Read(const DnsSettings& settings) {
  std::unique_ptr<DnsSystem> system(new DnsSystem);
  std::string servers_only = "b", resolv_conf = settings.resolv_conf;
  ares_options options{};
  options.lookups = servers_only.data();  // files are for InHosts: a worker reads none
  options.flags = ARES_FLAG_EDNS;
  options.ednspsz = kUdpBytesMax;
  options.timeout = static_cast<int>(settings.timeout.count());
  options.tries = settings.tries;
  options.sock_state_cb = &OnSocketState;
  options.sock_state_cb_data = system.get();
  options.resolvconf_path = resolv_conf.data();
  int which = ARES_OPT_LOOKUPS | ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
              ARES_OPT_SOCK_STATE_CB;
  if (!resolv_conf.empty()) which |= ARES_OPT_RESOLVCONF;
  int status = ares_init_options(&system->ares_, &options, which);
  if (status != ARES_SUCCESS)
    return MakeError(ErrorKind::kIo, std::string("the system's DNS configuration: ") + ares_strerror(status));
  std::string all;
  for (const std::string& server : settings.servers) all += (all.empty() ? "" : ",") + server;
  if (!all.empty()) status = ares_set_servers_ports_csv(system->ares_, all.c_str());
  if (status != ARES_SUCCESS) return MakeError(ErrorKind::kIo, "servers " + all + ": " + ares_strerror(status));
  return system;
}

DnsSystem::~DnsSystem() {
  if (ares_ != nullptr) ares_destroy(ares_);
}

void DnsSystem::OnSocketState(void* system, int fd, int readable, int writable) {
  if (SocketWatcher* watcher = static_cast<DnsSystem*>(system)->watcher_)
    watcher->OnSocket(fd, readable != 0, writable != 0);
}

std::vector<std::string> DnsSystem::InHosts(const std::string& name) {
  std::vector<std::string> addresses;
  ares_channeldata* const files = FilesChannel();
  if (files == nullptr) return addresses;
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_flags = ARES_AI_NOSORT;
  const std::string plain = name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
  const auto take = [](void* out, int, int, ares_addrinfo* found) {
    *static_cast<std::vector<std::string>*>(out) = TakeAddresses(found);
  };
  ares_getaddrinfo(files, plain.c_str(), nullptr, &hints, take, &addresses);
  return addresses;
}

std::vector<std::string> DnsSystem::NamesFor(const std::string& name) const {
  if (name.ends_with('.')) return {name.substr(0, name.size() - 1)};
  std::vector<std::string> names;
  ares_options in_force{};
  int which = 0;
  if (ares_save_options(ares_, &in_force, &which) != ARES_SUCCESS) in_force.ndots = 1;
  for (int i = 0; i < in_force.ndomains; ++i) {
    const std::string domain = in_force.domains[i];
    if (name.size() + 1 + domain.size() <= kNameBytesMax && names.size() + 1 < kNamesMax && domain != ".")
      names.push_back(name + "." + domain);
  }
  const bool full = std::count(name.begin(), name.end(), '.') >= in_force.ndots;
  ares_destroy_options(&in_force);
  names.insert(full ? names.begin() : names.end(), name);
  return names;
}

}  // namespace sluice::net

// Answers of DNS servers: any bytes are a failure with words, nothing, or records that can be used; and any records
// come to a list whose endpoints are allowed, sorted and there once.
//
// The input: a byte that chooses the record type, the mode of the list and the endpoint that it is at; then the
// message.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "discovery/dns/dns_list.h"
#include "fuzz/support/program.h"
#include "net/dns/dns_reply.h"

namespace sluice::discovery {
namespace {

using net::DnsReply;
using net::DnsType;

void CheckReply(DnsType type, const DnsReply& reply) {
  SLUICE_CHECK((reply.kind == DnsReply::Kind::kFailed) == !reply.error.empty());
  const size_t records = reply.hosts.size() + reply.targets.size();
  SLUICE_CHECK((reply.kind == DnsReply::Kind::kFound) == (records > 0) && records <= DnsReply::kRecordsMax);
  SLUICE_CHECK(type == DnsType::kSrv ? reply.hosts.empty() : reply.targets.empty());
  SLUICE_CHECK(reply.ttl >= DnsReply::kTtlMin && reply.ttl <= DnsReply::kTtlMax);
  for (const std::string& host : reply.hosts) {
    const auto address = net::Address::Parse(type == DnsType::kA ? host + ":1" : "[" + host + "]:1");
    SLUICE_CHECK(address.ok() && address->kind() == net::Address::Kind::kIp);
  }
  for (const net::DnsTarget& target : reply.targets) SLUICE_CHECK(!target.host.empty() && target.host != ".");
}

void CheckList(const DnsOptions& options, const List& list) {
  SLUICE_CHECK(options.mode == DnsMode::kAll || list.size() <= 1);
  for (size_t i = 0; i < list.size(); ++i) {
    SLUICE_CHECK(i == 0 || list[i - 1].name < list[i].name);
    SLUICE_CHECK(list[i].weight >= 0.01 && list[i].weight <= 1 && list[i].priority < upstream::kPrioritiesMax);
    SLUICE_CHECK(list[i].address.kind() == net::Address::Kind::kIp && list[i].address.port() != 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Program program(data, size);
  const uint8_t choices = program.U8();
  constexpr DnsType kTypes[] = {DnsType::kA, DnsType::kAaaa, DnsType::kSrv};
  const DnsType type = kTypes[choices % 3];
  const std::string_view rest = program.Rest();
  const DnsReply reply = ReadReply(type, 0, {reinterpret_cast<const uint8_t*>(rest.data()), rest.size()});
  CheckReply(type, reply);

  DnsOptions options;
  options.name = "users.test";
  options.port = 1;
  options.mode = (choices & 0x80) != 0 ? DnsMode::kOne : DnsMode::kAll;
  std::vector<DnsHost> hosts;
  for (const std::string& host : reply.hosts) hosts.push_back({host, 1});
  for (size_t i = 0; i < reply.targets.size(); ++i) {
    const net::DnsTarget& target = reply.targets[i];
    hosts.push_back({"10.0.0." + std::to_string(i % 200), target.port, target.priority, target.weight});
  }
  const List list = ListOf(options, hosts, "10.0.0.1:1", hosts.size());
  CheckList(options, list);
  // In whatever order they come.
  std::reverse(hosts.begin(), hosts.end());
  SLUICE_CHECK(ListOf(options, hosts, "10.0.0.1:1", hosts.size()) == list);
  return 0;
}

}  // namespace sluice::discovery

// What a server of etcd says: the input is read as a list of messages (a byte that says which kind, two of length),
// each goes through the parser of its kind, and what those give becomes a list. Never an exception; a list has no more
// endpoints than allowed, is sorted, and each name in it once; what an endpoint says of itself is read back equal.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "config/config.h"
#include "discovery/etcd/etcd_list.h"
#include "discovery/etcd/etcd_messages.h"

namespace sluice::discovery {
namespace {

// All control characters and what is no ASCII.
bool Printable(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

void CheckList(const EtcdList& list) {
  const base::Result<List> made = list.Make();
  if (!made.ok()) {
    SLUICE_CHECK(!made.error().detail.empty() && Printable(made.error().detail));
    return;
  }
  SLUICE_CHECK(made->size() <= EtcdList::kKeysMax);
  for (size_t i = 0; i < made->size(); ++i) {
    const upstream::EndpointOptions& endpoint = (*made)[i];
    SLUICE_CHECK(!endpoint.name.empty());
    SLUICE_CHECK(i == 0 || (*made)[i - 1].name < endpoint.name);
    const auto again = config::ParseEndpointValue(endpoint.name, EtcdValueOf(endpoint));
    SLUICE_CHECK(again.ok() && *again == endpoint);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  EtcdList list("/p/", &config::ParseEndpointValue);
  while (rest.size() >= 3) {
    const auto kind = static_cast<uint8_t>(rest[0]);
    const size_t length = static_cast<uint8_t>(rest[1]) * size_t{256} + static_cast<uint8_t>(rest[2]);
    const std::string bytes(rest.substr(3, length));
    rest.remove_prefix(3 + bytes.size());
    switch (kind % 6) {
      case 0:
        if (const std::optional<EtcdPage> page = ParseEtcdPage(bytes)) list.Apply(page->keys);
        break;
      case 1:
        if (const std::optional<EtcdNews> news = ParseEtcdNews(bytes)) {
          list.Apply(news->changes);
          SLUICE_CHECK(Printable(EtcdShown(news->reason)));
        }
        break;
      case 2:
        (void)ParseEtcdToken(bytes);
        break;
      case 3:
        (void)ParseEtcdGrant(bytes);
        (void)ParseEtcdKeepAlive(bytes);
        break;
      case 4:  // a value without a message around it, which a fuzzer finds sooner
        list.Apply({{"/p/" + std::to_string(kind), bytes}});
        break;
      case 5:
        list.Begin();
        break;
    }
    CheckList(list);
  }
  return 0;
}

}  // namespace sluice::discovery

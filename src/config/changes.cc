#include "config/changes.h"

#include <algorithm>
#include <string_view>

#include "config/text.h"

namespace sluice::config {
namespace {

// Of things with names: those of `before` that are gone, those of `after` that are new or not as they were.
template <typename Things, typename Name>
void Compare(std::string_view what, const Things& before, const Things& after, Name name,
             std::vector<std::string>* out) {
  const auto find = [&](const Things& things, const std::string& wanted) {
    return std::find_if(things.begin(), things.end(), [&](const auto& each) { return name(each) == wanted; });
  };
  for (const auto& each : before) {
    if (find(after, name(each)) == after.end()) out->push_back(Cat(what, " ", name(each), ": removed"));
  }
  for (const auto& each : after) {
    const auto it = find(before, name(each));
    if (it == before.end())
      out->push_back(Cat(what, " ", name(each), ": added"));
    else if (!(*it == each))
      out->push_back(Cat(what, " ", name(each), ": changed"));
  }
}

}  // namespace

std::vector<std::string> Changes(const Config& before, const Config& after) {
  std::vector<std::string> out;
  const auto by_name = [](const auto& each) -> const std::string& { return each.name; };
  const auto by_key = [](const auto& each) -> const std::string& { return each.first; };
  Compare("listener", before.listeners, after.listeners, by_name, &out);
  Compare("cluster", before.clusters, after.clusters, by_name, &out);
  Compare("source of the list of cluster", before.discovery, after.discovery, by_key, &out);
  Compare("jwt provider", before.jwt, after.jwt, by_name, &out);
  Compare("route", before.routes, after.routes, by_name, &out);
  if (out.empty() && before.routes != after.routes) out.push_back("routes: in another order");
  const auto whole = [&out](std::string_view key, bool same) {
    if (!same) out.push_back(Cat(key, ": changed"));
  };
  whole("announce", before.announce == after.announce);
  whole("admin.roles", before.admin.roles == after.admin.roles);
  whole("log", before.log == after.log);
  whole("access_log", before.access_log == after.access_log);
  whole("insight", before.insight == after.insight);
  whole("tracing", before.tracing == after.tracing);
  whole("forwarding", before.forwarding == after.forwarding);
  whole("concurrency", before.concurrency == after.concurrency);
  whole("cache", before.cache == after.cache);
  whole("memory.buffered_bytes_max", before.buffered_bytes_max == after.buffered_bytes_max);
  whole("connections_max", before.connections_max == after.connections_max);
  whole("descriptor_set", before.descriptor_set == after.descriptor_set);
  whole("drain_timeout", before.drain_timeout == after.drain_timeout);
  whole("hash_seed", before.hash_seed == after.hash_seed);
  if (out.empty() && !(before == after)) out.push_back("another option: changed");
  return out;
}

}  // namespace sluice::config

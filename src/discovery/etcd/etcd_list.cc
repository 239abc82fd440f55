#include "discovery/etcd/etcd_list.h"

#include <charconv>
#include <utility>

namespace sluice::discovery {
namespace {

// Errors of a list that are told, so that a log line stays one.
constexpr size_t kErrorsTold = 5;

base::Error Bad(std::string detail) { return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(detail)); }

// In the shortest form that is read back equal.
std::string NumberText(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

void EtcdList::Begin() {
  entries_.clear();
  overflown_ = false;
}

void EtcdList::Apply(const std::vector<EtcdChange>& changes) {
  for (const EtcdChange& change : changes) {
    if (!change.value) {
      entries_.erase(change.key);
    } else if (entries_.size() < kKeysMax || entries_.count(change.key) > 0) {
      entries_.insert_or_assign(change.key, EndpointOf(change));
    } else {
      overflown_ = true;
    }
  }
}

base::Result<upstream::EndpointOptions> EtcdList::EndpointOf(const EtcdChange& change) const {
  const std::string_view key = change.key, value = *change.value;
  if (key.substr(0, prefix_.size()) != prefix_) return Bad("is not below " + prefix_);
  if (key.size() == prefix_.size()) return Bad("is the prefix itself; a name must follow it");
  if (value.size() > kValueBytesMax) {
    return Bad("has a value of " + std::to_string(value.size()) + " bytes; at most " + std::to_string(kValueBytesMax) +
               " are allowed");
  }
  return parse_(key.substr(prefix_.size()), value);
}

base::Result<List> EtcdList::Make() const {
  if (overflown_)
    return Bad("more than " + std::to_string(kKeysMax) + " keys; a cluster can have no more endpoints than that");
  List list;
  std::string told;
  size_t errors = 0;
  const auto tell = [&](const std::string& text) {
    if (++errors <= kErrorsTold) told += (told.empty() ? "" : "; ") + text;
  };
  std::map<std::string_view, std::string_view> keys;  // by name
  for (const auto& [key, endpoint] : entries_) {
    if (!endpoint.ok()) {
      tell(EtcdShown(key) + ": " + EtcdShown(endpoint.error().detail));
      continue;
    }
    const auto [other, first] = keys.emplace(endpoint->name, key);
    if (first)
      list.push_back(*endpoint);
    else
      tell(EtcdShown(key) + ": name " + endpoint->name + " is also that of " + EtcdShown(other->second));
  }
  if (errors > kErrorsTold) told += "; and " + std::to_string(errors - kErrorsTold) + " more";
  if (errors > 0) return Bad(std::move(told));
  Sort(list);
  return list;
}

std::string EtcdValueOf(const upstream::EndpointOptions& endpoint) {
  const std::string address = endpoint.address.ToString();
  if (endpoint.priority == 0 && endpoint.locality.empty())
    return endpoint.weight == 1 ? address : address + "@" + NumberText(endpoint.weight);
  std::string value = "{\"address\": " + Quoted(address) + ", \"weight\": " + NumberText(endpoint.weight);
  if (endpoint.priority != 0) value += ", \"priority\": " + std::to_string(endpoint.priority);
  if (!endpoint.locality.empty()) value += ", \"locality\": " + Quoted(endpoint.locality);
  return value + "}";
}

}  // namespace sluice::discovery

// ConnectionLimits: how many client connections there are, in all and from each address, over all listeners of a
// process.
//
// What is one address says net::PeerAddressKey; Unix sockets have none. Memory: 48 bytes or so for each address that
// has a counted connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

namespace sluice::proxy {

// Thread safety: all functions from any thread; never suspends.
class ConnectionLimits : public std::enable_shared_from_this<ConnectionLimits> {
 public:
  // One connection's place, given back when it is destroyed, on any thread.
  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class ConnectionLimits;
    Place(std::shared_ptr<ConnectionLimits> limits, std::optional<uint64_t> key)
        : limits_(std::move(limits)), key_(key) {}
    const std::shared_ptr<ConnectionLimits> limits_;
    const std::optional<uint64_t> key_;
  };
  using PlacePtr = std::shared_ptr<const Place>;

  explicit ConnectionLimits(int64_t connections_max) : max_(connections_max) {}

  void SetMax(int64_t connections_max) { max_.store(connections_max, std::memory_order_relaxed); }
  int64_t max() const { return max_.load(std::memory_order_relaxed); }
  // By a few off while several workers accept: each asks before it accepts one.
  bool Full() const { return open() >= max(); }
  int64_t open() const { return open_.load(std::memory_order_relaxed); }

  // A place for a connection that was accepted. Null: its address has `per_peer_max` already. 0: no bound, and not
  // counted.
  PlacePtr Enter(std::string_view peer_name, uint32_t per_peer_max);

 private:
  std::atomic<int64_t> max_;
  std::atomic<int64_t> open_{0};
  std::mutex mutex_;
  std::map<uint64_t, uint32_t> peers_;  // under mutex_. A tree: peers choose the keys, and no choice makes it slow
};

}  // namespace sluice::proxy

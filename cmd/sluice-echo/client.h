// RunClient: keyed calls of the four kinds to a target, and a tally of the servers that answered.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "tally.h"

namespace sluice::echo {

struct ClientOptions {
  std::string target = "127.0.0.1:7070";
  std::string kind = "unary";  // unary, server, client, bidi, or all: one after the other
  uint64_t calls = 1000;       // 0: until the duration is over or a signal comes
  uint64_t keys = 100;
  uint64_t concurrency = 8;  // threads, each with one call at a time
  uint64_t connections = 2;
  uint64_t messages = 3;  // in a stream
  uint64_t payload_bytes = 16;
  uint64_t rate = 0;                      // calls a second over all threads; 0: as fast as answers come
  std::chrono::milliseconds duration{0};  // 0: no bound
  std::chrono::milliseconds timeout{10000};
  std::chrono::milliseconds delay{0};  // the server waits this long before it answers
};

// Returns when all calls are made, the duration is over, or `*stop` is set.
void RunClient(const ClientOptions& options, const std::atomic<bool>* stop, Tally* tally);

}  // namespace sluice::echo

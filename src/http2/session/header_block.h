// HeaderBlock: a header block that waits for CONTINUATION (RFC 9113 6.10), joined as its parts come. Its bytes count as
// held for the peer; each part counts as much as it costs to handle, so that empty ones come to an end too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/memory_budget.h"

namespace sluice::http2 {

class HeaderBlock {
 public:
  static constexpr uint32_t kPartCostMin = 64;

  // The stream of the block; 0: none is open, and then the rest means nothing.
  uint32_t id() const { return id_; }
  bool end_stream() const { return end_stream_; }
  bool on_itself() const { return on_itself_; }  // its priority fields: the stream depends on itself

  void Begin(uint32_t id, bool end_stream, bool on_itself, std::string_view fragment) {
    id_ = id;
    end_stream_ = end_stream;
    on_itself_ = on_itself;
    cost_ = static_cast<uint32_t>(fragment.size());
    bytes_.assign(fragment);
    charge_.Set(bytes_.capacity());
  }
  // A part of so many bytes is about to be added. False: the block is beyond `bytes_max` with it.
  bool Admit(uint32_t bytes, uint32_t bytes_max) {
    cost_ += std::max(bytes, kPartCostMin);
    return cost_ <= bytes_max;
  }
  void Add(std::string_view fragment) {
    bytes_.append(fragment);
    charge_.Set(bytes_.capacity());
  }
  // The whole block; none is open from here on.
  std::string Take() {
    id_ = 0;
    charge_.Set(0);
    return std::exchange(bytes_, std::string());
  }

 private:
  uint32_t id_ = 0;
  bool end_stream_ = false;
  bool on_itself_ = false;
  uint32_t cost_ = 0;
  std::string bytes_;
  base::MemoryCharge charge_;  // for its capacity
};

}  // namespace sluice::http2

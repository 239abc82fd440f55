#include "http2/session/streams.h"

#include <algorithm>

namespace sluice::http2 {

void Streams::PutAside(Stream& stream) {
  stream.OwnedNode::Unlink();
  stream.next_free_ = released_;
  released_ = &stream;
}

void Streams::FreeReleased() {
  while (released_ != nullptr) {
    Stream* stream = released_;
    released_ = stream->next_free_;
    StreamPool::Free(stream);
  }
}

void Streams::SortByAge(std::vector<Stream*>& streams) {
  std::sort(streams.begin(), streams.end(), [](const Stream* a, const Stream* b) { return a->id() < b->id(); });
}

}  // namespace sluice::http2

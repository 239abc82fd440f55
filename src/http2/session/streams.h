// Streams: the streams of a session: which are open, which ids each side has used, which have ended lately, and which
// wait to be freed.
//
//   Insert -> open, in the table -> Close: in no table, its consumer may keep it -> PutAside -> FreeReleased
//
// A released stream is put aside first, because a function on the stack may still hold it. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/intrusive_list.h"
#include "http2/frame/frame.h"
#include "http2/session/ended_streams.h"
#include "http2/session/stream.h"
#include "http2/session/stream_table.h"

namespace sluice::http2 {

class Streams {
 public:
  // Open or half-closed, as RFC 9113 5.1.2 counts.
  size_t size() const { return table_.size(); }
  Stream* Find(uint32_t id) const { return table_.Find(id); }
  // fn(Stream&) for each open one; fn opens and closes none.
  template <typename Fn>
  void ForEach(Fn&& fn) const {
    table_.ForEach(std::forward<Fn>(fn));
  }
  // Those open that fn(const Stream&) is true of, the oldest first: the first to come is the first to be told, and so
  // is first where it goes next.
  template <typename Fn>
  std::vector<Stream*> Select(Fn&& fn) const {
    std::vector<Stream*> chosen;
    table_.ForEach([&](Stream& stream) {
      if (fn(stream)) chosen.push_back(&stream);
    });
    SortByAge(chosen);
    return chosen;
  }

  void Insert(Stream& stream) {
    all_.PushBack(stream);
    table_.Insert(&stream);
  }
  void Close(Stream& stream) { table_.Erase(stream.id()); }
  // Closed, and released by its consumer.
  void PutAside(Stream& stream);
  void FreeReleased();
  // The next of those that are not put aside, which is forgotten here; null: none is left.
  Stream* TakeAny() { return all_.PopFront(); }

  // Of the stream that we open next; there is one only while ids_left().
  uint32_t TakeId() { return std::exchange(next_id_, next_id_ + 2); }
  bool ids_left() const { return next_id_ <= kStreamIdMax; }
  // The highest id that the peer has used.
  uint32_t last_peer_id() const { return last_peer_id_; }
  void NotePeerId(uint32_t id) { last_peer_id_ = id; }
  // RFC 9113 5.1.1: an id that its side has not used yet. A server opens no stream, as push is never enabled; so all
  // streams there are were opened by the peer, or `by_us`.
  bool IsIdle(uint32_t id, bool by_us) const {
    if ((id & 1) == 0) return true;
    return by_us ? id >= next_id_ : id > last_peer_id_;
  }

  EndedStreams& ended() { return ended_; }
  const EndedStreams& ended() const { return ended_; }

 private:
  static void SortByAge(std::vector<Stream*>& streams);

  StreamTable<Stream> table_;                  // the open ones, by id
  base::IntrusiveList<Stream, OwnedTag> all_;  // all that are not put aside
  Stream* released_ = nullptr;
  uint32_t next_id_ = 1;       // client: of the next that we open
  uint32_t last_peer_id_ = 0;  // server: the highest the client used
  EndedStreams ended_;
};

}  // namespace sluice::http2

// MovedCall: a call that runs on another worker than its client's connection. Two halves, which talk through lanes:
//
//   home: the connection's worker                            away: the call's worker
//
//   http2::Stream --events--> HomeStream  ==== lane ====>  RemoteStream --events--> Call
//                 <--calls---             <=== lane =====               <--calls---
//
// A Call sees a StreamIo and need not know. Each half is touched by its own worker only.
//
//   home half                                        away half
//   kOpen   --OnReset: stream released, kReset-->    kOpen    --kReset: Call::OnReset, which releases-->  kReleased
//     |                                                |  Release(): kRelease is the last item about the call
//     |     kGone (stream is null; items from away     +-->  kReleased (items from home are ignored)
//     |      about it are ignored)
//     +--kRelease, in either state: the stream is released if it is there, and the object is free
//
// So there is one end, kRelease, and it is away's to say: home may have lost its stream long before, and away hears of
// nothing after it, because what home said before it knew is ignored, and the object is given to another call of the
// same lane only after kRelease came; that call's kStart is behind everything said about this one.
//
// Bound: home counts calls until kRelease (AwayClient::open), away those whose task is alive; each is at most the
// connection's calls_max. So neither the lanes nor away's queue of tasks grow with a client that resets as fast as it
// asks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/intrusive_list.h"
#include "http2/stream_io.h"
#include "proxy/client.h"

namespace sluice::http2 {
class Stream;
}

namespace sluice::proxy {

class AwayClients;
class CallLane;
struct MovedCall;

// A client's connection, as another worker knows it.
struct AwayClient : base::ListNode<AwayClient> {
  // Home's. `home` is null once the connection has gone.
  AwayClients* home = nullptr;
  CallLane* lane = nullptr;
  long calls_max = 0;  // set before the first call, then constant

  // Away's, from the first kStart on. A pointer with a count of its own, so that calls there write no line of home's.
  alignas(64) ClientPtr client;
  uint32_t streams = 0;  // calls not released
  bool gone = false;     // kClientGone has come
};

// Home's: a connection's clients on other workers, made when a call goes there first.
class AwayClients {
 public:
  AwayClients() = default;
  AwayClients(const AwayClients&) = delete;
  AwayClients& operator=(const AwayClients&) = delete;
  ~AwayClients();  // the connection has gone, and its streams have been told

  AwayClient& On(CallLane& lane, const ClientPtr& client, long calls_max);
  // Calls that other workers have not released.
  uint32_t open() const { return open_; }

 private:
  friend class HomeStream;
  std::vector<AwayClient*> clients_;
  uint32_t open_ = 0;
};

// The events of the stream at home.
class HomeStream : public http2::StreamEvents, public base::ListNode<HomeStream> {
 public:
  void Begin(CallLane& lane, http2::Stream& stream, AwayClient& client);

  void OnHeaders(http2::HeaderList fields, bool end_stream) override;
  void OnData(const base::Slice& bytes, bool end_stream) override;
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
  void OnSent(size_t bytes) override;

  // What the call does.
  void SendHeaders(const http2::HeaderList& fields, bool end_stream);
  void SendData(const base::Slice& bytes, bool end_stream);
  void Consume(size_t bytes);
  void Reset(http2::ErrorCode code);
  // This is free afterwards.
  void Release();

  // Bytes sent since the last call; 0 if nobody wants to know any more.
  size_t TakeSent();
  MovedCall& call();

 private:
  CallLane* lane_ = nullptr;
  http2::Stream* stream_ = nullptr;  // null once released
  AwayClient* client_ = nullptr;
  size_t sent_ = 0;
  bool ended_ = false;  // the call has said END_STREAM: it hears no more of what was sent
};

// The call's downstream.
class alignas(64) RemoteStream : public http2::StreamIo {
 public:
  // `back`: the lane home.
  void Begin(CallLane& back, AwayClient& client);
  void SetEvents(http2::StreamEvents* events) { events_ = events; }
  // The call has not released it. After that events may not be set.
  bool open() const { return back_ != nullptr; }

  void SendHeaders(const http2::HeaderList& fields, bool end_stream) override;
  void SendData(const base::Slice& bytes, bool end_stream) override;
  void Consume(size_t bytes) override;
  void Reset(http2::ErrorCode code) override;
  void Release() override;

  // What the stream at home has heard.
  void OnHeaders(http2::HeaderList fields);
  void OnData(const base::Slice& bytes, bool end_stream);
  void OnReset(http2::ErrorCode code, http2::ResetCause cause);
  void OnSent(size_t bytes);

  MovedCall& call();

 private:
  CallLane* back_ = nullptr;  // null once released
  AwayClient* client_ = nullptr;
  http2::StreamEvents* events_ = nullptr;
  bool input_ended_ = false;   // END_STREAM from the client: no window is worth crediting
  bool output_ended_ = false;  // END_STREAM said, or reset
};

// Both halves in one piece of memory, on cache lines of their own.
struct MovedCall final : base::ListNode<MovedCall>, HomeStream, RemoteStream {
  HomeStream& home() { return *this; }
  RemoteStream& away() { return *this; }
  MovedCall* next_free = nullptr;  // home's, while nobody uses it
};

inline MovedCall& HomeStream::call() { return static_cast<MovedCall&>(*this); }
inline MovedCall& RemoteStream::call() { return static_cast<MovedCall&>(*this); }

// Away's: the connection has gone, and the last call was released: it may be freed at home.
void FreeClientIfUnused(AwayClient& client, CallLane& back);

}  // namespace sluice::proxy

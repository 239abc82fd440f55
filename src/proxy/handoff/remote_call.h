// RemoteCall: a call that runs on another worker than its client's connection. Two halves, which talk through channels:
//
//   home: the connection's worker                            away: the call's worker
//
//   http2::Stream --events--> HomeSide  == channel ==>  AwaySide --events--> Call
//                 <--calls---             <== channel ===               <--calls---
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
// Only the away side ends a call, by sending kRelease. Home may have lost its stream earlier; it then ignores what
// still arrives. Away ignores what home sent before it knew of the end. The object is given to another call of the same
// channel only after kRelease has arrived, and that call's kStart is behind all items about this one. It is freed when
// the away side has read all that home wrote about it: kRelease says that nothing more comes from away, not that
// nothing more is on its way there.
//
// Bound: home counts calls until kRelease (AwayClient::open), away those whose task is alive; each is at most the
// connection's calls_max. So neither the channels nor away's queue of tasks grow with a client that resets as fast as
// it asks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/intrusive_list.h"
#include "http2/session/stream_io.h"
#include "proxy/client.h"
#include "proxy/handoff/channel.h"
#include "runtime/mailed_ptr.h"

namespace sluice::proxy {

class AwayClients;
class RemoteCalls;

// A client's connection, as another worker knows it.
struct AwayClient : base::ListNode<AwayClient> {
  // Home's. `home` is null once the connection has gone.
  AwayClients* home = nullptr;
  RemoteCalls* calls = nullptr;
  long calls_max = 0;  // set before the first call, then constant
  // Never used again, so both sides know the one use. kClientFreed is sent behind the reading of kClientGone, which is
  // behind all items about the client.
  runtime::MailUse mail_use;
  runtime::MailedPtr<AwayClient> name() { return {*this, mail_use}; }

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

  AwayClient& On(RemoteCalls& calls, const ClientPtr& client, long calls_max);
  // Calls that other workers have not released.
  uint32_t open() const { return open_; }

 private:
  friend class HomeSide;
  std::vector<AwayClient*> clients_;
  uint32_t open_ = 0;
};

// The events of the stream at home.
class HomeSide : public http2::StreamEvents {
 public:
  void Begin(RemoteCalls& calls, http2::RequestStream& stream, AwayClient& client);
  // For items to the away side.
  runtime::MailedPtr<RemoteCall> name();

  void OnHeaders(http2::HeaderList&& fields, bool end_stream) override;
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

  RemoteCall& call();

  runtime::MailUse home_use;

 private:
  void End();
  WorkerChannel& channel();

  RemoteCalls* calls_ = nullptr;
  http2::RequestStream* stream_ = nullptr;  // null once released
  AwayClient* client_ = nullptr;
  SentBytes sent_;
  bool ended_ = false;  // the call has said END_STREAM, or reset: it hears no more of what was sent
};

// The call's downstream.
class alignas(64) AwaySide : public http2::StreamIo {
 public:
  // `back`: the channel home.
  void Begin(WorkerChannel& back, AwayClient& client);
  void SetEvents(http2::StreamEvents* events) { events_ = events; }

  void SendHeaders(const http2::HeaderList& fields, bool end_stream) override;
  void SendData(const base::Slice& bytes, bool end_stream) override;
  void Consume(size_t bytes) override;
  void Reset(http2::ErrorCode code) override;
  void Release() override;

  // What the stream at home has heard.
  void OnHeaders(http2::HeaderList&& fields);
  void OnData(const base::Slice& bytes, bool end_stream);
  void OnReset(http2::ErrorCode code, http2::ResetCause cause);
  void OnSent(size_t bytes);

  RemoteCall& call();

  runtime::MailUse away_use;

 private:
  runtime::MailedPtr<RemoteCall> name();

  WorkerChannel* back_ = nullptr;  // null once released
  AwayClient* client_ = nullptr;
  http2::StreamEvents* events_ = nullptr;
  bool input_ended_ = false;   // END_STREAM from the client: no window is worth crediting
  bool output_ended_ = false;  // END_STREAM said, or reset
};

// Both halves in one piece of memory, on cache lines of their own.
struct RemoteCall final : base::ListNode<RemoteCall>, HomeSide, AwaySide {
  HomeSide& home() { return *this; }
  AwaySide& away() { return *this; }
  uint64_t last_batch = 0;  // home's, while it is not in use: with the last item about it, of the channel's batches
};

// Home's: the channel to one other worker, and the calls that have left through it. One call is one object on both
// sides.
class RemoteCalls {
 public:
  RemoteCalls(runtime::Worker& from, runtime::Worker& to, BatchReader& reader) : channel_(from, to, reader) {}
  // When no worker runs.
  ~RemoteCalls();

  RemoteCall& New();
  // kRelease has come. Its memory stays for the next call, and at least until away has read the last item about it.
  void Free(RemoteCall& call);
  // Calls that are in use.
  uint32_t open() const { return open_; }
  // `calls_max`: what the other worker may have alive of the connection.
  AwayClient& NewClient(const ClientPtr& client, long calls_max);
  void FreeClient(AwayClient& client);

  WorkerChannel& channel() { return channel_; }

  // Calls kept for later: about 200 KiB. Few where mail is checked, so that tests free what releases seldom do.
  static constexpr size_t kFreeMax = runtime::kMailIsChecked ? 2 : 1024;

 private:
  WorkerChannel channel_;
  base::IntrusiveList<RemoteCall, RemoteCall> in_use_;
  uint32_t open_ = 0;
  base::IntrusiveList<RemoteCall, RemoteCall> free_;  // by last_batch; the next call takes the last
  size_t free_count_ = 0;
  base::IntrusiveList<AwayClient, AwayClient> clients_;
};

inline RemoteCall& HomeSide::call() { return static_cast<RemoteCall&>(*this); }
inline runtime::MailedPtr<RemoteCall> HomeSide::name() { return {call(), home_use}; }
inline WorkerChannel& HomeSide::channel() { return calls_->channel(); }
inline RemoteCall& AwaySide::call() { return static_cast<RemoteCall&>(*this); }
inline runtime::MailedPtr<RemoteCall> AwaySide::name() { return {call(), away_use}; }

// The half that an item is for, on that half's worker.
inline HomeSide& AtHome(const Item& item) { return item.call.Open(&RemoteCall::home_use); }
inline AwaySide& AtAway(const Item& item) { return item.call.Open(&RemoteCall::away_use); }

// Away's, at kClientGone. Home frees the client once the last call was released.
void ClientGone(AwayClient& client, WorkerChannel& back);

}  // namespace sluice::proxy

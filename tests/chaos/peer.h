// Peer: the far end of one of the proxy's connections: HTTP/2 with its own windows and manners, driven by the timeline.
//
// Bytes go out and are read in pieces of chance after delays of chance. A peer keeps the protocol (windows, states,
// frame sizes) unless told to break it, and holds the proxy to it: what the proxy may not send is a fault of the run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chaos/dice.h"
#include "chaos/record.h"
#include "chaos/timeline.h"
#include "http2/hpack/decoder.h"
#include "support/h2_frames.h"
#include "support/memory_stream.h"

namespace sluice::chaos {

// How a peer handles its socket and its windows.
struct Manners {
  size_t write_max = 0, read_max = 0;    // bytes at a time; 0: all
  Micros write_delay{0}, read_delay{0};  // up to
  size_t data_max = 16384;               // of one DATA frame
  uint32_t padding_max = 0;
  bool cuts_headers = false;  // CONTINUATION
  bool indexes = false;       // literals with incremental indexing
  uint32_t window = 65535;    // of a stream, SETTINGS_INITIAL_WINDOW_SIZE
  Micros credit_delay{0};     // up to; WINDOW_UPDATE
  uint32_t table_bytes = 4096;
  uint32_t streams_max = UINT32_MAX;
};
// `hasty`: without delays. `small`: no body of the run is long, so it may be cut to single bytes.
Manners DrawManners(Dice& dice, bool hasty, bool small);

// What peers share.
struct Stage {
  Timeline& timeline;
  Record& record;
  http2::InternTable& interns;
  bool over = false;                   // the script has ended: nothing is held back any more
  std::map<uint32_t, int> executions;  // by a call's number: how often backends have worked on it
};

class Peer : private net::IoEvents {
 public:
  enum class Role { kClient, kServer };
  Peer(Stage& stage, Role role, std::string name, std::unique_ptr<net::MemoryStream> wire, const Manners& manners,
       Dice dice);
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& name() const { return name_; }
  // The connection is over for this peer, whichever side ended it.
  bool gone() const { return gone_; }
  // It has broken the protocol, or its connection by force: nothing is owed to it.
  bool spoiled() const { return spoiled_; }
  // Credits what was held back.
  void GoOn();

  // Breaks of manners.
  void Stall(base::Nanos time);  // reads nothing
  void HoldCredit() { credit_held_ = true; }
  void Garbage();
  void WrongFrame();
  void Reset();  // as by RST
  void HalfClose();
  void Close();

 protected:
  virtual void OnHeaders(uint32_t id, const h2::Fields& fields, bool end) = 0;
  virtual void OnData(uint32_t id, std::string_view bytes, bool end) = 0;
  virtual void OnReset(uint32_t id, uint32_t code) = 0;
  virtual void OnGoaway(uint32_t last, uint32_t code) = 0;
  virtual void OnSettings() {}
  virtual void OnGone() = 0;
  // A frame that breaks the protocol, of this role's choice; empty: none.
  virtual std::string RoleWrongFrame() { return {}; }

  void Queue(const std::string& frames);
  void SendHeaders(uint32_t id, const h2::Fields& fields, bool end);
  // As windows allow; what is sent later with SendHeaders(end) waits for it.
  void SendData(uint32_t id, std::string_view bytes, bool end);
  void SendReset(uint32_t id, uint32_t code);
  // Nothing more is sent on it, and nothing kept for it.
  void Forget(uint32_t id);
  bool Unsent() const;
  bool OutputEmpty() const { return at_ == out_.size(); }
  void Spoil() { spoiled_ = true; }
  void Fault(const std::string& what) { stage_.record.Fault(name_ + ": " + what); }
  uint32_t peer_streams_max() const { return peer_streams_max_; }
  uint32_t highest_heard() const { return highest_heard_; }

  Stage& stage_;
  Dice dice_;
  const Manners manners_;

 private:
  struct Flow {
    int64_t send_window = 0;
    int64_t allowed = 0;  // bytes the proxy may still send on it
    std::string pending;
    size_t at = 0;  // of pending, sent
    bool end = false, ended = false, reset = false;
    bool heard_end = false;
    bool has_trailers = false;
    h2::Fields trailers;
  };

  void OnReadable() override;
  void OnWritable() override;
  void WriteSoon();
  void Write();
  void Read();
  void Parse();
  void Hear(const h2::Frame& frame);
  void HearHeaders(const h2::Frame& frame);
  void HearData(const h2::Frame& frame);
  void HearSettings(const h2::Frame& frame);
  Flow& FlowOf(uint32_t id);
  void Pump();
  void PumpStream(uint32_t id, Flow& flow);
  void Credit(uint32_t id, uint32_t n);
  void PutHeaders(uint32_t id, const h2::Fields& fields, bool end);
  std::string Block(const h2::Fields& fields);
  void End(const char* why);

  const Role role_;
  const std::string name_;
  const std::unique_ptr<net::MemoryStream> wire_;
  std::string out_;
  size_t at_ = 0;  // of out_, written
  bool write_planned_ = false, write_waits_ = false;
  bool read_planned_ = false;
  bool gone_ = false, spoiled_ = false, half_closed_ = false;
  base::TimePoint stalled_until_{};

  std::string in_;
  size_t preface_left_;
  std::string block_;
  uint32_t block_stream_ = 0;  // not 0: CONTINUATION must follow
  bool block_end_ = false;
  http2::HpackDecoder decoder_;
  std::map<uint32_t, Flow> flows_;
  int64_t send_window_ = 65535, allowed_ = 65535;  // of the connection
  uint32_t initial_send_ = 65535;
  uint32_t peer_frame_max_ = 16384, peer_streams_max_ = UINT32_MAX;
  uint32_t highest_heard_ = 0;
  std::optional<uint32_t> table_update_;  // to be said at the front of the next block
  bool settings_heard_ = false;
  bool credit_held_ = false;
  std::map<uint32_t, uint32_t> owed_;  // credit held back, by stream
};

}  // namespace sluice::chaos

// SessionHarness: a Session whose peer is a test that speaks in frames, and whose events are written down as
// text.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http2/session/session.h"
#include "support/h2_frames.h"

namespace sluice::h2 {

inline std::string Text(const http2::HeaderList& fields) {
  std::string out;
  for (const http2::Field* field : fields) {
    if (!out.empty()) out += ", ";
    out.append(field->name()).append("=").append(field->value());
  }
  return out;
}
inline http2::HeaderList List(http2::InternTable& interns, const Fields& fields) {
  http2::HeaderList list(&interns);
  for (const auto& [name, value] : fields) list.Add(name, value);
  return list;
}

// What one stream's consumer has heard. Hooks run after the event was written down.
class Recorder final : public http2::StreamEvents {
 public:
  Recorder(uint32_t id, std::vector<std::string>& log) : id_(id), log_(log) {}

  void OnHeaders(http2::HeaderList&& fields, bool end_stream) override {
    Log("headers " + Text(fields) + (end_stream ? " END" : ""));
    headers.push_back(Text(fields));
    end |= end_stream;
    if (on_headers) on_headers();
  }
  void OnData(const base::Slice& bytes, bool end_stream) override {
    data.append(bytes.view());
    end |= end_stream;
    if (end_stream) Log("data " + std::to_string(data.size()) + " END");
    if (on_data) on_data(bytes);
  }
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override {
    static const char* const kCauses[] = {"peer",     "refused", "lost",      "retired",  "went away",
                                          "protocol", "stalled", "too large", "metadata", "malformed body"};
    Log("reset " + std::string(ToString(code)) + " " + kCauses[static_cast<int>(cause)]);
    reset = true;
    if (on_reset) on_reset();
  }
  void OnSent(size_t bytes) override {
    sent += bytes;
    if (on_sent) on_sent(bytes);
  }

  std::string data;
  std::vector<std::string> headers;
  size_t sent = 0;
  bool end = false, reset = false;
  std::function<void()> on_headers, on_reset;
  std::function<void(const base::Slice&)> on_data;
  std::function<void(size_t)> on_sent;

 private:
  void Log(const std::string& text) { log_.push_back(std::to_string(id_) + ": " + text); }
  const uint32_t id_;
  std::vector<std::string>& log_;
};

class SessionHarness final : public http2::SessionEvents {
 public:
  explicit SessionHarness(http2::Role role, const http2::SessionOptions& options = {})
      : session(std::make_unique<http2::Session>(role, options, interns, *this)), role_(role) {}
  ~SessionHarness() {
    session.reset();
    for (auto& [id, stream] : streams) stream->Release();
  }

  // Start() and the peer's part of the start, whose answers are dropped.
  void Handshake(const std::vector<std::pair<uint16_t, uint32_t>>& settings = {}) {
    session->Start();
    Feed((role_ == http2::Role::kServer ? Preface() : "") + Settings(settings) + SettingsAck());
    Frames();
    log.clear();
  }
  bool Feed(std::string_view bytes) {
    base::Status status = session->Feed(base::Slice::Copy(bytes), now);
    error = status.ok() ? "" : status.error().detail;
    return status.ok();
  }
  // What the session has to say now, as a connection would write it.
  std::string Written() {
    std::string out;
    do {
      session->FrameOutput();
      out += session->output().ToString();
      session->output().Consume(session->output().size());
    } while (session->HasOutput());
    return out;
  }
  std::vector<Frame> Frames() {
    wire_ += Written();
    if (!preface_seen_ && role_ == http2::Role::kClient && wire_.size() >= Preface().size()) {
      preface_seen_ = true;
      wire_.erase(0, Preface().size());
    }
    return TakeFrames(wire_);
  }
  // The frames written since the last call, in words.
  std::vector<std::string> Said() { return Describe(Frames()); }

  // Server. A request that is open, with its consumer listening.
  http2::Stream& Request(uint32_t id, uint8_t flags = kEndHeaders) {
    Feed(Headers(id, Block(GrpcRequest()), flags));
    return *streams.at(id);
  }
  // Client.
  http2::Stream& Open(bool end_stream = false, const Fields& fields = GrpcRequest()) {
    auto recorder = std::make_unique<Recorder>(next_, log);
    http2::Stream* stream = session->Open(List(interns, fields), end_stream, *recorder);
    SLUICE_CHECK(stream != nullptr);
    recorders[next_] = std::move(recorder);
    streams[next_] = stream;
    next_ += 2;
    return *stream;
  }
  void Release(uint32_t id) {
    auto node = streams.extract(id);
    node.mapped()->Release();
  }
  Recorder& Heard(uint32_t id) { return *recorders.at(id); }

  http2::StreamEvents* OnRequest(http2::Stream& stream, http2::HeaderList&& fields, bool end_stream) override {
    uint32_t id = stream.id();
    log.push_back(std::to_string(id) + ": request " + Text(fields) + (end_stream ? " END" : ""));
    recorders[id] = std::make_unique<Recorder>(id, log);
    streams[id] = &stream;
    if (on_request) return on_request(stream);
    return recorders[id].get();
  }
  void OnCapacity() override {
    ++capacity_signals;
    if (on_capacity) on_capacity();
  }
  void OnGoaway(http2::ErrorCode code, uint32_t last_stream_id, std::string_view debug) override {
    log.push_back("goaway " + std::string(ToString(code)) + " last=" + std::to_string(last_stream_id) + " " +
                  std::string(debug));
  }
  void OnPingAck(uint64_t payload) override { log.push_back("ping ack " + std::to_string(payload)); }
  void OnOutput() override { ++output_signals; }

  http2::InternTable interns;
  std::vector<std::string> log;  // before the session: handlers write to it until it is gone
  std::map<uint32_t, std::unique_ptr<Recorder>> recorders;
  std::map<uint32_t, http2::Stream*> streams;  // not released yet
  std::function<http2::StreamEvents*(http2::Stream&)> on_request;
  std::function<void()> on_capacity;
  int capacity_signals = 0, output_signals = 0;
  std::string error;
  base::TimePoint now{};  // passes when a test says so
  std::unique_ptr<http2::Session> session;

 private:
  const http2::Role role_;
  std::string wire_;
  bool preface_seen_ = false;
  uint32_t next_ = 1;
};

}  // namespace sluice::h2

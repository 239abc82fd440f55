#include "hostile/hostile_backend.h"

#include <algorithm>
#include <utility>

#include "hostile/guard.h"

namespace sluice::hostile {
namespace {

constexpr int kRoundsMax = 40;  // a loop without an end is ended here

std::string Find(const Fields& fields, std::string_view name) {
  for (const auto& [n, value] : fields) {
    if (n == name) return value;
  }
  return {};
}

uint8_t FlagsOf(const Move& op, size_t at) { return op.arg(at) == "end" ? h2::kEndStream : 0; }

}  // namespace

struct HostileBackend::Stream {
  uint32_t id = 0;
  Fields request;
  std::string body;
  std::string program;
  size_t next = 0;  // operation
  bool ended = false, waits_for_end = false, over = false;
};

struct HostileBackend::Connection {
  std::unique_ptr<FramePeer> peer;
  std::map<uint32_t, Stream> streams;
};

HostileBackend::HostileBackend(Loop& loop, Report report)
    : loop_(loop),
      report_(std::move(report)),
      listener_(std::make_unique<Listener>(loop, [this](int fd) { Accepted(fd); })) {}

HostileBackend::~HostileBackend() = default;

void HostileBackend::Program(const std::string& name, Move op) { programs_[name].push_back(std::move(op)); }

const Script* HostileBackend::program(const std::string& name) const {
  const auto found = programs_.find(name);
  return found == programs_.end() ? nullptr : &found->second;
}

void HostileBackend::Accepted(int fd) {
  auto connection = std::make_shared<Connection>();
  Connection* const raw = connection.get();
  connection->peer = std::make_unique<FramePeer>(
      loop_, h2::Preface().size(),
      [this, raw](uint32_t stream, const Fields& fields, bool ended) { Request(*raw, stream, fields, ended); },
      [this, raw](const h2::Frame& frame) { Frame(*raw, frame); }, [this, raw](const std::string&) { Drop(*raw); });
  connections_.emplace(raw, connection);
  raw->peer->wire().Take(fd);
  raw->peer->Send(first_settings_.empty() ? h2::Settings() : first_settings_);
}

void HostileBackend::Drop(Connection& connection) {
  // Its callback is on the stack: it goes with the next turn.
  const auto found = connections_.find(&connection);
  if (found == connections_.end()) return;
  const auto kept = found->second;
  kept->peer->wire().Close();
  connections_.erase(found);
  loop_.After(0, [kept] {});
}

void HostileBackend::Request(Connection& connection, uint32_t id, const Fields& fields, bool ended) {
  const auto known = connection.streams.find(id);
  const std::string path =
      known == connection.streams.end() ? Find(fields, ":path") : Find(known->second.request, ":path");
  const std::string bad = known == connection.streams.end()
                              ? GuardReason(path, Find(fields, ":authority"), fields, true)
                              : GuardFieldsReason(fields, GuardPath(path).starts_with("/t.guarded/"), true);
  if (!bad.empty()) report_("the frame backend has seen what it must not: " + bad);
  const auto kept = connections_.find(&connection);
  if (kept == connections_.end()) return;
  if (known == connection.streams.end()) {
    ++calls_;
    Stream& stream = connection.streams[id];
    stream.id = id;
    stream.request = fields;
    stream.ended = ended;
    stream.program = Find(fields, "x-script");
    if (connection.streams.size() > 20'000) connection.streams.erase(connection.streams.begin());
  } else {
    known->second.ended = known->second.ended || ended;
  }
  Step(kept->second, id);
}

void HostileBackend::Frame(Connection& connection, const h2::Frame& frame) {
  if (frame.type == h2::kSettings && !frame.has(h2::kAck)) connection.peer->Send(h2::SettingsAck());
  if (frame.type == h2::kPing && !frame.has(h2::kAck))
    connection.peer->Send(h2::RawFrame(h2::kPing, h2::kAck, 0, frame.payload));
  if (frame.type == h2::kGoaway && frame.Word(4) != 0)
    spoiled_ = true;  // it was told that it is wrong: the proxy ends the connection
  if (frame.type == h2::kRstStream) connection.streams.erase(frame.stream);
  if (frame.type != h2::kData) return;
  const auto found = connection.streams.find(frame.stream);
  if (credits_ && !frame.payload.empty()) {
    connection.peer->Send(h2::WindowUpdate(0, static_cast<uint32_t>(frame.payload.size())) +
                          (frame.has(h2::kEndStream)
                               ? std::string()
                               : h2::WindowUpdate(frame.stream, static_cast<uint32_t>(frame.payload.size()))));
  }
  if (found == connection.streams.end()) return;
  if (found->second.body.size() < (1 << 20)) found->second.body += frame.payload;
  if (!frame.has(h2::kEndStream)) return;
  found->second.ended = true;
  const auto kept = connections_.find(&connection);
  if (kept != connections_.end()) Step(kept->second, frame.stream);
}

void HostileBackend::Step(const std::shared_ptr<Connection>& connection, uint32_t id) {
  for (;;) {
    const auto found = connection->streams.find(id);
    if (found == connection->streams.end() || !connection->peer->wire().open()) return;
    Stream& stream = found->second;
    if (stream.over) return;
    const Script* const ops = program(stream.program);
    if (ops == nullptr) {
      if (stream.ended) Echo(*connection, stream);
      return;
    }
    if (stream.waits_for_end && !stream.ended) return;
    stream.waits_for_end = false;
    if (stream.next >= ops->size()) return;
    const Move op = (*ops)[stream.next++];
    if (op.verb == "wait") {
      stream.waits_for_end = false;
      stream.over = true;  // until then
      loop_.After(static_cast<double>(std::clamp(op.number(0), 0l, 5000l)),
                  [this, weak = std::weak_ptr<Connection>(connection), id] {
                    const auto alive = weak.lock();
                    if (!alive) return;
                    const auto again = alive->streams.find(id);
                    if (again == alive->streams.end()) return;
                    again->second.over = false;
                    Step(alive, id);
                  });
      return;
    }
    if (!Do(*connection, stream, op)) return;
  }
}

bool HostileBackend::Do(Connection& connection, Stream& stream, const Move& op) {
  FramePeer& peer = *connection.peer;
  if (op.verb == "await") {
    stream.waits_for_end = true;
  } else if (op.verb == "head") {
    Fields fields = op.fields(1);
    for (auto& [name, value] : fields) {
      if (value == "$id") value = Find(stream.request, "x-id");
    }
    peer.Send(BlockFrames(stream.id, RawBlock(fields, op.arg(0) == "index"), op.arg(0) == "end"));
  } else if (op.verb == "data" || op.verb == "msg") {
    std::string bytes(static_cast<size_t>(std::clamp(op.number(0), 0l, 4l << 20)), 'd');
    if (op.verb == "msg") bytes = h2::Message(bytes);
    do {
      const std::string part = bytes.substr(0, 16384);
      bytes.erase(0, part.size());
      peer.Send(h2::Data(stream.id, part, bytes.empty() ? FlagsOf(op, 1) : 0));
    } while (!bytes.empty());
  } else if (op.verb == "frame") {
    peer.Send(
        h2::RawFrame(static_cast<uint8_t>(op.number(0)), static_cast<uint8_t>(op.number(1)), stream.id, op.arg(2)));
  } else if (op.verb == "raw") {
    peer.Send(op.arg(0));
  } else if (op.verb == "rst") {
    peer.Send(h2::RstStream(stream.id, static_cast<uint32_t>(op.number(0))));
  } else if (op.verb == "goaway") {
    peer.Send(h2::Goaway(op.arg(0) == "this" ? stream.id : static_cast<uint32_t>(op.number(0)),
                         static_cast<uint32_t>(op.number(1))));
  } else if (op.verb == "relay") {
    Relay(stream);
  } else if (op.verb == "close" || op.verb == "abort") {
    if (op.verb == "abort") peer.wire().Abort();
    Drop(connection);
    return false;
  }
  return true;
}

void HostileBackend::Echo(Connection& connection, Stream& stream) {
  stream.over = true;
  std::string out = h2::Headers(stream.id, RawBlock({{":status", "200"},
                                                     {"content-type", "application/grpc"},
                                                     {"x-backend", "frames"},
                                                     {"x-id", Find(stream.request, "x-id")}}));
  for (size_t at = 0; at < stream.body.size(); at += 16384) out += h2::Data(stream.id, stream.body.substr(at, 16384));
  out += h2::Headers(stream.id, RawBlock({{"grpc-status", "0"}}), h2::kEndHeaders | h2::kEndStream);
  connection.peer->Send(out);
}

void HostileBackend::Relay(const Stream& stream) {
  const std::string id = Find(stream.request, "x-id");
  const int rounds = ++rounds_[id];
  if (rounds == kRoundsMax)
    report_("one call has come round " + std::to_string(rounds) + " times: nothing ends a loop");
  if (rounds >= kRoundsMax || proxy_port_ == 0) return;
  if (relay_ == nullptr || !relay_->wire().open()) {
    relay_stream_ = 1;
    relay_ = std::make_unique<FramePeer>(
        loop_, 0, [](uint32_t, const Fields&, bool) {},
        [this](const h2::Frame& frame) {
          if (frame.type == h2::kSettings && !frame.has(h2::kAck)) relay_->Send(h2::SettingsAck());
        },
        [](const std::string&) {});
    if (!relay_->wire().Connect(proxy_port_)) return;
    relay_->Send(h2::Preface() + h2::Settings({{0xf51c, 1}}));  // as a Sluice says it (http2::SettingId::kProxied)
  }
  relay_->Send(BlockFrames(relay_stream_, RawBlock(stream.request), true));
  relay_stream_ += 2;
}

void HostileBackend::SendAll(const std::string& bytes, bool also_new) {
  spoiled_ = true;
  if (also_new) first_settings_ = bytes;
  for (const auto& [raw, connection] : std::map(connections_)) raw->peer->Send(bytes);
}

void HostileBackend::CloseAll(bool abort) {
  for (const auto& [raw, connection] : std::map(connections_)) {
    if (abort) raw->peer->wire().Abort();
    Drop(*raw);
  }
}

void HostileBackend::Reset() {
  programs_.clear();
  rounds_.clear();
  first_settings_.clear();
  credits_ = true;
  if (relay_) relay_->wire().Close();
  if (std::exchange(spoiled_, false)) CloseAll(false);
}

namespace {

// A frame that is no part of an answer: of an unknown type, which is ignored (RFC 9113 4.1), PRIORITY, SETTINGS, PING,
// GOAWAY, WINDOW_UPDATE. Where it is malformed it ends the stream, or not.
bool SaysNothing(const Move& op) {
  const long type = op.number(0);
  return op.verb == "frame" && (type > 9 || type == 2 || type == 4 || (type >= 6 && type <= 8));
}

}  // namespace

bool MayBeOk(const Script& program) {
  bool head = false, ended = false, ok = false;
  for (const Move& op : program) {
    // A GOAWAY says nothing of streams up to the one that it names: their answers may follow (RFC 9113 6.8).
    const bool spares_it = op.verb == "goaway" && (op.arg(0) == "this" || op.number(0) == 0x7fffffff);
    if (op.verb == "await" || op.verb == "wait" || spares_it || SaysNothing(op)) continue;
    if (ended) break;  // what is said behind the end does not take it back
    const bool ends = op.arg(op.verb == "head" ? 0 : 1) == "end";
    if (op.verb == "head") {
      const Fields fields = op.fields(1);
      const std::string status = Find(fields, ":status");
      if (!head && status.size() == 3 && status[0] == '1' && !ends) continue;
      // Which type it says, its client sees.
      if (!head && status != "200") return false;
      const auto zeros =
          std::count_if(fields.begin(), fields.end(), [](const auto& f) { return f.first == "grpc-status"; });
      const std::string number = GuardTrim(Find(fields, "grpc-status"));  // "00" is 0
      if (ends)
        ok = zeros == 1 && !number.empty() && number.find_first_not_of('0') == std::string::npos;
      else if (head)
        return false;  // trailers that do not end the stream
      head = true;
      ended = ends;
    } else if (op.verb == "data" || op.verb == "msg") {
      if (!head || ends) return false;
    } else {
      return false;
    }
  }
  return ended && ok;
}

}  // namespace sluice::hostile

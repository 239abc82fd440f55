#include "chaos/peer.h"

#include <algorithm>
#include <cerrno>

namespace sluice::chaos {

using net::IoResult;

Manners DrawManners(Dice& dice, bool hasty, bool small) {
  Manners m;
  const auto piece = [&]() -> size_t {
    if (dice.OneIn(2)) return 0;
    return small && dice.OneIn(4) ? dice.In(1, 10) : dice.In(40, 5000);
  };
  m.write_max = piece();
  m.read_max = piece();
  if (!hasty) {
    const auto delay = [&] { return dice.Of({Micros(0), Micros(200), Micros(3000), Micros(40000)}); };
    m.write_delay = m.write_max != 0 && m.write_max < 40 ? Micros(20) : delay();
    m.read_delay = m.read_max != 0 && m.read_max < 40 ? Micros(20) : delay();
    m.credit_delay = delay();
  }
  m.data_max = small ? dice.In(1, 2000) : dice.In(3000, 16384);
  m.padding_max = dice.OneIn(4) ? 255 : 0;
  m.cuts_headers = dice.OneIn(4);
  m.indexes = dice.OneIn(2);
  m.window = dice.Of<uint32_t>({65535, 65535, 0, 1, 700, 20000, 1 << 20});
  m.table_bytes = dice.Of<uint32_t>({4096, 4096, 0, 64, 200, 16384});
  m.streams_max = dice.OneIn(3) ? static_cast<uint32_t>(dice.In(1, 8)) : UINT32_MAX;
  return m;
}

Peer::Peer(Stage& stage, Role role, std::string name, std::unique_ptr<net::MemoryStream> wire, const Manners& manners,
           Dice dice)
    : stage_(stage),
      dice_(dice),
      manners_(manners),
      role_(role),
      name_(std::move(name)),
      wire_(std::move(wire)),
      preface_left_(role == Role::kServer ? h2::Preface().size() : 0),
      decoder_(stage.interns) {
  std::vector<std::pair<uint16_t, uint32_t>> settings;
  if (role == Role::kClient) settings.emplace_back(2, 0);
  if (manners_.window != 65535) settings.emplace_back(4, manners_.window);
  if (manners_.table_bytes != 4096) settings.emplace_back(1, manners_.table_bytes);
  if (role == Role::kServer && manners_.streams_max != UINT32_MAX) settings.emplace_back(3, manners_.streams_max);
  if (role == Role::kClient) out_ = h2::Preface();
  Queue(h2::Settings(settings));
  wire_->WaitReadable(*this);
}

// --- bytes

void Peer::Queue(const std::string& frames) {
  if (gone_ || half_closed_) return;
  if (stage_.record.traces()) {
    std::string copy = frames;
    for (const h2::Frame& frame : h2::TakeFrames(copy)) stage_.record.Say(name_, "-> " + h2::Describe(frame));
  }
  out_ += frames;
  WriteSoon();
}

void Peer::WriteSoon() {
  if (write_planned_ || write_waits_ || gone_ || OutputEmpty()) return;
  write_planned_ = true;
  stage_.timeline.After(dice_.Time(manners_.write_delay), [this] {
    write_planned_ = false;
    Write();
  });
}

void Peer::Write() {
  if (gone_ || OutputEmpty()) return;
  size_t n = out_.size() - at_;
  if (manners_.write_max != 0) n = std::min(n, dice_.In(1, manners_.write_max));
  iovec part{out_.data() + at_, n};
  const IoResult result = wire_->Write(&part, 1);
  if (result.kind == IoResult::Kind::kError) {  // the proxy takes nothing more; what it has said is still read
    out_.clear();
    at_ = 0;
    half_closed_ = true;
    return;
  }
  if (result.kind == IoResult::Kind::kOk) at_ += result.bytes;
  if (OutputEmpty()) {
    out_.clear();
    at_ = 0;
    return;
  }
  if (result.kind == IoResult::Kind::kWouldBlock) {
    write_waits_ = true;
    return wire_->WaitWritable(*this);
  }
  WriteSoon();
}

void Peer::OnWritable() {
  write_waits_ = false;
  WriteSoon();
}

void Peer::OnReadable() {
  if (read_planned_ || gone_) return;
  read_planned_ = true;
  const base::TimePoint when = stage_.timeline.now() + dice_.Time(manners_.read_delay);
  stage_.timeline.At(std::max(when, stalled_until_), [this] {
    read_planned_ = false;
    Read();
  });
}

void Peer::Read() {
  if (gone_) return;
  if (stage_.timeline.now() < stalled_until_) return OnReadable();
  uint8_t buffer[16384];
  const size_t n =
      manners_.read_max == 0 ? sizeof(buffer) : std::min<size_t>(sizeof(buffer), dice_.In(1, manners_.read_max));
  const IoResult result = wire_->Read(buffer, n);
  switch (result.kind) {
    case IoResult::Kind::kWouldBlock:
      break;
    case IoResult::Kind::kEof:
      return End("end");
    case IoResult::Kind::kError:
      return End("error");
    case IoResult::Kind::kOk:
      in_.append(reinterpret_cast<const char*>(buffer), result.bytes);
      Parse();
      break;
  }
  if (!gone_) wire_->WaitReadable(*this);
}

void Peer::End(const char* why) {
  if (gone_) return;
  stage_.record.Say(name_, std::string("connection over: ") + why);
  gone_ = true;
  wire_->Close();
  flows_.clear();
  OnGone();
}

// --- frames from the proxy

void Peer::Parse() {
  const size_t skip = std::min(preface_left_, in_.size());
  in_.erase(0, skip);
  preface_left_ -= skip;
  for (const h2::Frame& frame : h2::TakeFrames(in_)) {
    if (gone_) return;
    if (stage_.record.traces()) stage_.record.Say(name_, "<- " + h2::Describe(frame));
    Hear(frame);
  }
}

void Peer::Hear(const h2::Frame& frame) {
  if (frame.payload.size() > 16384) Fault("a frame of " + std::to_string(frame.payload.size()) + " bytes");
  if (block_stream_ != 0 && (frame.type != h2::kContinuation || frame.stream != block_stream_))
    Fault("a header block is interrupted");
  if (!settings_heard_ && frame.type != h2::kSettings) Fault("the first frame is not SETTINGS");
  switch (frame.type) {
    case h2::kHeaders:
    case h2::kContinuation:
      return HearHeaders(frame);
    case h2::kData:
      return HearData(frame);
    case h2::kSettings:
      return HearSettings(frame);
    case h2::kRstStream: {
      Flow& flow = FlowOf(frame.stream);
      flow.reset = flow.heard_end = true;
      flow.pending.clear();
      flow.at = 0;
      return OnReset(frame.stream, frame.Word());
    }
    case h2::kPing:
      if (!frame.has(h2::kAck)) Queue(h2::RawFrame(h2::kPing, h2::kAck, 0, frame.payload));
      return;
    case h2::kGoaway:
      return OnGoaway(frame.Word() & 0x7fffffff, frame.Word(4));
    case h2::kWindowUpdate: {
      const uint32_t n = frame.Word();
      if (n == 0) Fault("WINDOW_UPDATE of 0");
      int64_t& window = frame.stream == 0 ? send_window_ : FlowOf(frame.stream).send_window;
      window += n;
      if (window > 0x7fffffff) Fault("a window above 2^31-1");
      return Pump();
    }
    default:
      Fault("frame type " + std::to_string(frame.type));
  }
}

void Peer::HearHeaders(const h2::Frame& frame) {
  if (frame.type == h2::kHeaders) {
    block_end_ = frame.has(h2::kEndStream);
    highest_heard_ = std::max(highest_heard_, frame.stream);
  }
  block_ += frame.payload;
  block_stream_ = frame.has(h2::kEndHeaders) ? 0 : frame.stream;
  if (block_stream_ != 0) return;
  http2::HeaderList list(&stage_.interns);
  if (decoder_.Decode(std::exchange(block_, {}), {size_t{1} << 22, 10000}, list) != http2::DecodeResult::kOk) {
    Spoil();
    Fault("a header block that cannot be decoded");
    return Reset();
  }
  h2::Fields fields;
  for (const http2::Field* field : list) fields.emplace_back(field->name(), field->value());
  Flow& flow = FlowOf(frame.stream);
  if (flow.heard_end) Fault("HEADERS after the end of stream " + std::to_string(frame.stream));
  flow.heard_end |= block_end_;
  if (stage_.record.traces()) {
    std::string text;
    for (const auto& [name, value] : fields) text += " " + name + "=" + value.substr(0, 40);
    stage_.record.Say(name_, "  " + std::to_string(frame.stream) + ":" + text);
  }
  OnHeaders(frame.stream, fields, block_end_);
}

void Peer::HearData(const h2::Frame& frame) {
  const auto n = static_cast<uint32_t>(frame.payload.size());
  Flow& flow = FlowOf(frame.stream);
  if (flow.heard_end) Fault("DATA after the end of stream " + std::to_string(frame.stream));
  allowed_ -= n;
  flow.allowed -= n;
  if (allowed_ < 0 || flow.allowed < 0) Fault("DATA beyond the window");
  flow.heard_end |= frame.has(h2::kEndStream);
  Credit(0, n);
  if (!flow.heard_end) Credit(frame.stream, n);
  OnData(frame.stream, frame.payload, frame.has(h2::kEndStream));
}

void Peer::HearSettings(const h2::Frame& frame) {
  settings_heard_ = true;
  if (frame.has(h2::kAck)) return decoder_.SetTableBytesMax(manners_.table_bytes);
  for (size_t at = 0; at + 6 <= frame.payload.size(); at += 6) {
    const uint32_t id = frame.Word(at) >> 16, value = frame.Word(at + 2);
    if (id == 3) peer_streams_max_ = value;
    if (id == 5) peer_frame_max_ = value;
    if (id == 1 && value < 4096) table_update_ = value;
    if (id != 4) continue;
    for (auto& [stream, flow] : flows_) flow.send_window += int64_t{value} - initial_send_;
    initial_send_ = value;
  }
  Queue(h2::SettingsAck());
  OnSettings();
  Pump();
}

// --- windows

Peer::Flow& Peer::FlowOf(uint32_t id) {
  const auto [it, fresh] = flows_.try_emplace(id);
  if (fresh) {
    it->second.send_window = initial_send_;
    // What we have set may not be known to the proxy yet.
    it->second.allowed = std::max<int64_t>(65535, manners_.window);
    // Not before our HEADERS, where the stream is of our opening.
    if (manners_.window < 1000) stage_.timeline.After(Micros(1), [this, id] { Credit(id, 16384); });
  }
  return it->second;
}

void Peer::Credit(uint32_t id, uint32_t n) {
  if (n == 0) return;
  uint32_t& owed = owed_[id];
  owed += n;
  if (owed != n || credit_held_) return;  // it is on its way already
  const auto pay = [this, id] {
    if (gone_ || credit_held_) return;
    const uint32_t sum = std::exchange(owed_[id], 0);
    if (sum == 0) return;
    if (id == 0)
      allowed_ += sum;
    else if (auto it = flows_.find(id); it != flows_.end())
      it->second.allowed += sum;
    Queue(h2::WindowUpdate(id, sum));
  };
  const Micros delay = dice_.Time(manners_.credit_delay);
  if (delay.count() == 0) return pay();
  stage_.timeline.After(delay, pay);
}

void Peer::GoOn() {
  credit_held_ = false;
  for (auto& [id, sum] : std::exchange(owed_, {})) Credit(id, sum);
}

// --- frames to the proxy

std::string Peer::Block(const h2::Fields& fields) {
  std::string out;
  if (table_update_) {  // RFC 7541 4.2: the proxy's table is smaller than what we began with
    uint32_t rest = *std::exchange(table_update_, std::nullopt);
    out += static_cast<char>(0x20 | std::min<uint32_t>(rest, 31));
    if (rest >= 31) {
      for (rest -= 31; rest >= 128; rest >>= 7) out += static_cast<char>((rest & 127) | 128);
      out += static_cast<char>(rest);
    }
  }
  for (const auto& field : fields) {
    std::string one = h2::Block({field});
    if (manners_.indexes && dice_.OneIn(2))
      one[0] = 0x40;  // RFC 7541 6.2.1
    else if (dice_.OneIn(10))
      one[0] = 0x10;  // 6.2.3
    out += one;
  }
  return out;
}

void Peer::PutHeaders(uint32_t id, const h2::Fields& fields, bool end) {
  std::string block = Block(fields);
  // In several frames where it is too long for one, or for fun.
  std::string out;
  for (size_t from = 0; out.empty() || from < block.size();) {
    size_t n = std::min<size_t>(block.size() - from, peer_frame_max_);
    if (manners_.cuts_headers && dice_.OneIn(2)) n = std::min<size_t>(n, 1 + dice_.Below(200));
    const uint8_t last = from + n == block.size() ? h2::kEndHeaders : 0;
    const std::string part = block.substr(from, n);
    out += from > 0 ? h2::Continuation(id, part, last)
                    : h2::Headers(id, part, static_cast<uint8_t>(last | (end ? h2::kEndStream : 0)));
    from += n;
  }
  Queue(out);
}

void Peer::SendHeaders(uint32_t id, const h2::Fields& fields, bool end) {
  Flow& flow = FlowOf(id);
  if (flow.reset || flow.ended || gone_) return;
  if (!end || (flow.at == flow.pending.size() && !flow.end)) {
    flow.ended = end;
    return PutHeaders(id, fields, end);
  }
  flow.has_trailers = flow.end = true;
  flow.trailers = fields;
}

void Peer::SendData(uint32_t id, std::string_view bytes, bool end) {
  Flow& flow = FlowOf(id);
  if (flow.reset || flow.ended || gone_) return;
  flow.pending.append(bytes);
  flow.end |= end;
  PumpStream(id, flow);
}

void Peer::Pump() {
  for (auto& [id, flow] : flows_) PumpStream(id, flow);
}

void Peer::PumpStream(uint32_t id, Flow& flow) {
  if (flow.reset || flow.ended) return;
  while (flow.at < flow.pending.size() || (flow.end && !flow.ended)) {
    const size_t left = flow.pending.size() - flow.at;
    if (left == 0 && flow.has_trailers) {
      flow.ended = true;
      PutHeaders(id, flow.trailers, true);
      break;
    }
    const int64_t room = std::min(send_window_, flow.send_window);
    size_t n = std::min<size_t>(left, dice_.In(1, manners_.data_max));
    if (left > 0) {
      if (room <= 0) return;
      n = std::min<size_t>({n, static_cast<size_t>(room), peer_frame_max_});
    }
    const bool last = n == left && flow.end && !flow.has_trailers;
    const std::string part = flow.pending.substr(flow.at, n);
    const auto padding = static_cast<uint32_t>(dice_.Size(manners_.padding_max));
    size_t counted = n;
    const uint8_t flags = last ? h2::kEndStream : 0;
    if (manners_.padding_max != 0 && n + padding + 1 <= static_cast<size_t>(std::max<int64_t>(room, 0)) &&
        n + padding + 1 <= 16384) {
      Queue(h2::PaddedData(id, part, static_cast<uint8_t>(padding), flags));
      counted += padding + 1;
    } else {
      Queue(h2::Data(id, part, flags));
    }
    send_window_ -= static_cast<int64_t>(counted);
    flow.send_window -= static_cast<int64_t>(counted);
    flow.at += n;
    flow.ended |= last;
  }
  if (flow.at == flow.pending.size()) {
    flow.pending.clear();
    flow.at = 0;
  }
}

void Peer::SendReset(uint32_t id, uint32_t code) {
  Flow& flow = FlowOf(id);
  if (flow.reset || gone_) return;
  flow.reset = true;
  flow.pending.clear();
  flow.at = 0;
  Queue(h2::RstStream(id, code));
}

bool Peer::Unsent() const {
  return std::any_of(flows_.begin(), flows_.end(), [](const auto& entry) {
    const Flow& flow = entry.second;
    return !flow.reset && (flow.at < flow.pending.size() || (flow.end && !flow.ended));
  });
}

// --- breaks of manners

void Peer::Stall(base::Nanos time) {
  stage_.record.Say(name_, "reads nothing for a while");
  stalled_until_ = std::max(stalled_until_, stage_.timeline.now() + time);
}

void Peer::Garbage() {
  if (gone_ || half_closed_) return;
  stage_.record.Say(name_, "garbage");
  Spoil();
  out_ += dice_.Bytes(1 + dice_.Size(3000));
  WriteSoon();
}

void Peer::WrongFrame() {
  if (gone_ || half_closed_) return;
  Spoil();
  const uint32_t some = dice_.OneIn(2) ? highest_heard_ : static_cast<uint32_t>(dice_.In(1, 9));
  std::string frame;
  switch (dice_.Below(18)) {
    case 0:
      frame = h2::Data(0, "x");
      break;
    case 1:
      frame = h2::Headers(0, h2::Block({{"a", "b"}}));
      break;
    case 2:
      frame = h2::WindowUpdate(0, 0);
      break;
    case 3:
      frame = h2::WindowUpdate(some, 0);
      break;
    case 4:
      frame = h2::WindowUpdate(0, 0x7fffffff);
      break;
    case 5:
      frame = h2::RawFrame(h2::kSettings, 0, 0, "12345");
      break;
    case 6:
      frame = h2::Settings({{4, 0x80000000u}});
      break;
    case 7:
      frame = h2::Settings({{5, 100}});
      break;
    case 8:
      frame = h2::RawFrame(h2::kPing, 0, 0, "short");
      break;
    case 9:
      frame = h2::RawFrame(h2::kPushPromise, h2::kEndHeaders, 1, h2::Big(2, 4));
      break;
    case 10:
      frame = h2::Continuation(some, "x");
      break;
    case 11:
      frame = h2::RawFrame(h2::kRstStream, 0, 0, h2::Big(8, 4));
      break;
    case 12:
      frame = h2::RstStream(0x7ffffffd, 8);
      break;
    case 13:
      frame = h2::RawFrame(h2::kData, h2::kPadded, some,
                           "\xff"
                           "abc");
      break;
    case 14:
      frame = h2::Big(1 << 20, 3) + h2::Big(0, 1) + h2::Big(0, 1) + h2::Big(1, 4);
      break;
    case 15:
      frame = h2::Headers(some, "\xff\xff\xff\xff\xff\xff\xff\x7f");
      break;
    case 16:
      frame = h2::Goaway(0x7fffffff, 77, dice_.Bytes(20));
      break;
    default:
      frame = RoleWrongFrame();
      break;
  }
  stage_.record.Say(name_, "breaks the protocol");
  Queue(frame);
}

void Peer::Reset() {
  if (gone_) return;
  Spoil();
  wire_->Break(ECONNRESET);
  End("reset by this peer");
}

void Peer::HalfClose() {
  if (gone_ || half_closed_) return;
  stage_.record.Say(name_, "half-closes");
  Spoil();
  half_closed_ = true;
  out_.clear();
  at_ = 0;
  wire_->ShutdownWrite();
}

void Peer::Close() {
  if (gone_) return;
  Spoil();
  End("closed by this peer");
}

}  // namespace sluice::chaos

// SessionDriver: a whole Session of either role under a fuzzer's program: what its peer says, where reads are cut, what
// its owner and the streams' consumers do, also from inside events, and how much of its output is written when.
//
// Checked after each step: the order of each stream's events (headers before data, one end, nothing after a reset or a
// release), windows and buffers within the options, and by WireModel every frame that is said. At the end: every stream
// has ended exactly once, and nothing is left of it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/slice.h"
#include "fuzz/support/peer_frames.h"
#include "fuzz/support/program.h"
#include "fuzz/support/wire_model.h"
#include "http2/session/session.h"
#include "support/h2_frames.h"

namespace sluice::fuzz {

class SessionDriver final : public http2::SessionEvents {
 public:
  SessionDriver(http2::Role role, const uint8_t* data, size_t size)
      : role_(role),
        program_(data, size),
        options_(Options()),
        peer_(program_, server() ? FrameMaker::Peer::kClient : FrameMaker::Peer::kServer),
        model_(server(), options_) {}

  void Run() {
    const size_t blocks = base::Block::LiveBytes();
    {
      http2::InternTable interns;
      interns_ = &interns;
      session_ = std::make_unique<http2::Session>(role_, options_, interns, *this);
      session_->Start();
      Hear();
      const uint8_t start = program_.U8();
      if (start < 0xf0)
        pending_ = (server() ? h2::Preface() : "") + h2::Settings() + (start & 1 ? h2::SettingsAck() : "");
      for (int steps = 0; steps < 1500 && !program_.done() && told_bytes_ < 1 << 20; ++steps) {
        Step();
        Check();
      }
      End();
      interns_ = nullptr;  // its destructor checks that nothing is held
    }
    kept_.clear();
    SLUICE_CHECK(base::Block::LiveBytes() == blocks);
  }

 private:
  bool server() const { return role_ == http2::Role::kServer; }

  // A stream and its consumer.
  struct Consumer final : http2::StreamEvents {
    Consumer(SessionDriver& d, http2::Stream* s) : driver(d), stream(s), id(s != nullptr ? s->id() : 0) {}

    void OnHeaders(http2::HeaderList&& fields, bool end_stream) override {
      Heard();
      if (driver.server()) {
        SLUICE_CHECK(end_stream);  // trailers
      } else {
        const http2::Field* status = fields.Find(http2::Token::kStatus);
        SLUICE_CHECK((status == nullptr) == head);  // RFC 9113 8.1: one head, then trailers
        if (status == nullptr) {
          SLUICE_CHECK(end_stream);
        } else {
          SLUICE_CHECK(status->value().size() == 3);
          const bool interim = status->value()[0] == '1';
          SLUICE_CHECK(!interim || !end_stream);
          head = !interim;
        }
      }
      SLUICE_CHECK(fields.size() <= driver.options_.header_count_max);
      SLUICE_CHECK(fields.hpack_size() <= driver.options_.header_list_bytes_max);
      end |= end_stream;
      driver.React(*this);
    }
    void OnData(const base::Slice& bytes, bool end_stream) override {
      Heard();
      SLUICE_CHECK(head || driver.server());
      SLUICE_CHECK(!bytes.empty() || end_stream);
      held += bytes.size();
      SLUICE_CHECK(held <= driver.options_.stream_window_bytes);
      if (driver.keeps_) driver.kept_.push_back(bytes);
      end |= end_stream;
      driver.React(*this);
    }
    void OnReset(http2::ErrorCode, http2::ResetCause) override {
      SLUICE_CHECK(!gone && !reset);
      SLUICE_CHECK(!(end && stream->send_complete()));  // it was over
      reset = true;
      driver.React(*this);
    }
    void OnSent(size_t bytes) override {
      SLUICE_CHECK(!gone && !reset && bytes > 0);
      sent += bytes;
      SLUICE_CHECK(sent <= given);
      driver.React(*this);
    }
    void Heard() const { SLUICE_CHECK(!gone && !end && !reset); }

    SessionDriver& driver;
    http2::Stream* stream;  // null once released
    const uint32_t id;
    bool gone = false;                              // reset or released by us: nothing more may come
    bool head = false, end = false, reset = false;  // received
    bool sent_head = false, sent_end = false;       // given to be sent
    size_t held = 0, given = 0, sent = 0;
  };

  http2::SessionOptions Options() {
    http2::SessionOptions options;
    const uint8_t how = program_.U8();
    if (how & 1) options.concurrent_streams_max = 3;
    if (how & 2) options.stream_window_bytes = options.connection_window_bytes = 65535;
    if (how & 4) {
      options.header_list_bytes_max = 1024;
      options.header_count_max = 10;
    }
    if (how & 8) options.header_table_bytes = 0;
    if (how & 16) options.header_table_bytes = 16384;
    if (how & 32) options.header_block_bytes_max = 16384;
    if (how & 64) options.output_bytes_max = 16384;
    if (how & 128) options.control_frames_max = 16;
    return options;
  }

  void Step() {
    const uint8_t op = program_.U8();
    if (op < 0x80) {  // the peer says something; half of it is fed at once
      pending_ += peer_.Make(op & 15);
      if (op & 0x40) Feed(pending_.size());
      return;
    }
    switch (op & 31) {
      case 0:
      case 1:
        return Feed(1 + program_.U8());
      case 2:
        return Feed(pending_.size());
      case 3:
      case 4:
        return Write(program_.Size());
      case 5:
        return Write(SIZE_MAX);
      case 6:
      case 7:
      case 8: {
        const uint8_t what = program_.U8();
        return Act(what, Any());
      }
      case 9:
        return Open(program_.Flag());
      case 10:
        session_->GoawayGracefully();
        break;
      case 11:
        session_->GoawayNow(program_.Flag() ? http2::ErrorCode::kNoError : http2::ErrorCode::kEnhanceYourCalm, "why");
        break;
      case 12:
        session_->Ping(program_.U8());
        break;
      case 13:
        reactions_.push_back(program_.U8());
        return;
      case 14: {
        const size_t times = 1 + program_.Below(16);
        reactions_.insert(reactions_.end(), times, program_.U8());
        return;
      }
      case 15:
        keeps_ = !keeps_;
        return;
      case 16:
        kept_.clear();
        return;
      case 17:
        own_blocks_ = !own_blocks_;
        return;
      case 18:
        if (program_.Below(16) != 0) return;  // not in each program
        session_->TransportClosed("closed", program_.Flag());
        failed_ = true;
        Hear();
        model_.Closed();
        return;
      default:
        return Act(op, Any());
    }
    Hear();
  }

  // Gives the session the next `n` bytes of what the peer has said.
  void Feed(size_t n) {
    n = std::min(n, pending_.size());
    if (n == 0 || failed_) return pending_.clear();
    const std::string bytes = pending_.substr(0, n);
    pending_.erase(0, n);
    told_bytes_ += n;
    model_.Tell(bytes);
    base::Status status = base::Ok();
    if (own_blocks_) {
      status = session_->Feed(base::Slice::Copy(bytes));
    } else {
      // Of its own size, so that ASan sees a read behind the end. Slices of it may be kept to the end.
      memory_.push_back(std::make_unique<char[]>(n));
      std::memcpy(memory_.back().get(), bytes.data(), n);
      status = session_->Feed(base::Slice::Static({memory_.back().get(), n}));
    }
    Hear();
    if (!status.ok()) {
      failed_ = true;
      SLUICE_CHECK(status.error().kind ==
                   (server() ? base::ErrorKind::kMalformedRequest : base::ErrorKind::kUpstreamProtocol));
      SLUICE_CHECK(!status.error().detail.empty() && session_->closing() && session_->open_streams() == 0);
      model_.Failed();
    }
    if (!server()) {
      while (told_requests_ < model_.requests().size()) peer_.AddStream(model_.requests()[told_requests_++]);
    }
  }

  // The connection writes as much of the output as the socket takes.
  void Write(size_t bytes) {
    base::BufferChain& output = session_->output();
    const size_t before = output.size();
    session_->FrameOutput();
    // DATA is framed up to the limit and one frame beyond; then perhaps trailers, which are short here.
    SLUICE_CHECK(output.size() == before || output.size() < options_.output_bytes_max + 16384 + 9 + kTrailersMax);
    Hear();
    bytes = std::min(bytes, output.size());
    written_ += bytes;
    output.Consume(bytes);
  }
  static constexpr size_t kTrailersMax = 2048;

  // The model hears what the output has grown by.
  void Hear() {
    const base::BufferChain& output = session_->output();
    const uint64_t all = written_ + output.size();
    if (all == heard_) return;
    model_.Hear(output.ToString().substr(heard_ - written_));
    heard_ = all;
    if (!server()) {
      while (told_requests_ < model_.requests().size()) peer_.AddStream(model_.requests()[told_requests_++]);
    }
  }

  Consumer* Any() {
    const uint8_t which = program_.U8();
    return consumers_.empty()
               ? nullptr
               : consumers_[consumers_.size() - 1 - which % std::min<size_t>(consumers_.size(), 16)].get();
  }

  // A consumer does something. Also from inside an event.
  void Act(uint8_t what, Consumer* consumer) {
    if (consumer == nullptr || consumer->stream == nullptr) return;
    http2::Stream& stream = *consumer->stream;
    switch (what & 15) {
      case 0:
      case 1: {  // the head
        if (consumer->sent_head || consumer->sent_end) return;
        if (what & 0x40) {
          stream.SendHeaders(List({{":status", "103"}, {"link", "x"}}), false);
          break;
        }
        consumer->sent_head = true;
        consumer->sent_end = (what & 0x20) != 0;
        stream.SendHeaders(List(h2::GrpcResponse()), consumer->sent_end);
        break;
      }
      case 2:
      case 3:
      case 4: {  // a body
        if (!consumer->sent_head || consumer->sent_end) return;
        static constexpr size_t kSizes[] = {0, 1, 100, 1023, 1024, 16384, 16385, 70000};
        const size_t size = kSizes[what >> 4 & 7];
        consumer->sent_end = what >= 0xc0;
        if (stream.state() != http2::StreamState::kClosed) consumer->given += size;
        stream.SendData(base::Slice::Copy(std::string(size, 's')), consumer->sent_end);
        break;
      }
      case 5:
      case 6:  // trailers
        if (!consumer->sent_head || consumer->sent_end) return;
        consumer->sent_end = true;
        stream.SendHeaders(List(h2::With(h2::GrpcTrailers(), {{"x-long", std::string(what, 't')}})), true);
        break;
      case 7:
      case 8:
      case 9: {  // consumes
        const size_t bytes = what & 0x80 ? consumer->held : consumer->held / 2;
        consumer->held -= bytes;
        stream.Consume(bytes);
        break;
      }
      case 10:
        if (what & 0x20) return;
        consumer->gone = true;
        consumer->sent_end = true;
        stream.Reset(what & 0x40 ? http2::ErrorCode::kCancel : http2::ErrorCode::kInternalError);
        break;
      case 11:
        Release(*consumer);
        break;
      case 12:
        stream.Consume(SIZE_MAX);  // more than it holds: no harm
        consumer->held = 0;
        break;
      default:
        return;
    }
    if (in_event_ == 0) Hear();
  }
  void Release(Consumer& consumer) {
    consumer.gone = true;
    std::exchange(consumer.stream, nullptr)->Release();
  }

  // From inside an event of this consumer: what the program has prepared.
  void React(Consumer& consumer) {
    if (reactions_.empty() || in_event_ > 20) return;
    const uint8_t what = reactions_.front();
    reactions_.pop_front();
    ++in_event_;
    if ((what & 15) == 13 && !consumers_.empty()) {
      Act(static_cast<uint8_t>(what >> 4 | 0x80), consumers_[what % consumers_.size()].get());  // another stream
    } else if ((what & 15) == 14) {
      what & 0x80 ? session_->GoawayGracefully() : session_->Ping(what);
    } else if ((what & 15) == 15) {
      if (!server()) OpenStream(what & 0x80);
    } else {
      Act(what, &consumer);
    }
    --in_event_;
  }

  void Open(bool end) {
    if (server()) return;
    OpenStream(end);
    Hear();
  }
  void OpenStream(bool end) {
    const bool can = session_->CanOpen();
    auto consumer = std::make_unique<Consumer>(*this, nullptr);
    Consumer* const events = consumer.get();
    http2::Stream* stream = session_->Open(List(h2::GrpcRequest()), end, *events);
    SLUICE_CHECK((stream != nullptr) == can);
    if (stream == nullptr) return;
    SLUICE_CHECK(!session_->closing() && session_->open_streams() <= session_->peer_concurrent_streams_max());
    events->stream = stream;
    events->sent_head = true;
    events->sent_end = end;
    consumers_.push_back(std::move(consumer));
  }

  http2::StreamEvents* OnRequest(http2::Stream& stream, http2::HeaderList&& fields, bool end_stream) override {
    SLUICE_CHECK(server() && stream.id() % 2 == 1 && stream.id() > last_request_);  // RFC 9113 5.1.1
    last_request_ = stream.id();
    // RFC 9113 8.3.1: what every request has, once each.
    for (const char* name : {":method", ":path", ":scheme"}) {
      size_t times = 0;
      for (const http2::Field* field : fields) times += field->name() == name;
      SLUICE_CHECK(times == 1 || (times == 0 && fields.Find(http2::Token::kMethod)->value() == "CONNECT"));
    }
    for (const http2::Field* field : fields) {
      SLUICE_CHECK(field->name().find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ \r\n") == std::string_view::npos);  // 8.2.1
      SLUICE_CHECK(field->value().find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
      SLUICE_CHECK(field->name() != "connection" && field->name() != "transfer-encoding");  // 8.2.2
    }
    SLUICE_CHECK(session_->open_streams() <= options_.concurrent_streams_max);
    consumers_.push_back(std::make_unique<Consumer>(*this, &stream));
    Consumer& consumer = *consumers_.back();
    consumer.end = end_stream;
    React(consumer);
    if (consumer.stream == nullptr || consumers_.size() % 16 != 15)
      return consumer.stream == nullptr ? nullptr : &consumer;
    // Without a consumer the session lets it go.
    consumer.gone = true;
    consumer.stream = nullptr;
    return nullptr;
  }
  void OnCapacity() override {}
  void OnGoaway(http2::ErrorCode, uint32_t, std::string_view) override {}
  void OnPingAck(uint64_t) override {}
  void OnOutput() override { SLUICE_CHECK(in_event_ == 0); }

  void Check() {
    if (server()) SLUICE_CHECK(session_->open_streams() <= options_.concurrent_streams_max);
    size_t queued = 0;
    for (const auto& consumer : consumers_) {
      if (consumer->stream == nullptr) continue;
      const http2::Stream& stream = *consumer->stream;
      const bool closed = stream.state() == http2::StreamState::kClosed;
      if (consumer->reset) SLUICE_CHECK(closed);
      if (closed) {
        // Not without a word: an end both ways, a reset, or our own.
        SLUICE_CHECK(consumer->reset || consumer->gone || (consumer->end && stream.send_complete()));
        SLUICE_CHECK(stream.queued_bytes() == 0);
      } else {
        SLUICE_CHECK(consumer->given == consumer->sent + stream.queued_bytes());
      }
      queued += stream.queued_bytes();
    }
    SLUICE_CHECK(session_->buffered_bytes() >= session_->output().size() + queued);
    if (failed_) {
      SLUICE_CHECK(session_->open_streams() == 0 && session_->buffered_bytes() == session_->output().size());
      SLUICE_CHECK(!session_->CanOpen() && session_->closing());
    }
  }

  // The transport ends, or the session goes while streams are still held.
  void End() {
    const uint8_t how = program_.U8();
    reactions_.clear();
    if (how & 1) {
      session_->TransportClosed("the end", (how & 2) != 0);
      Check();
    }
    if (how & 4) {
      for (auto& consumer : consumers_) {
        if (consumer->stream != nullptr) Release(*consumer);
      }
    }
    session_.reset();
    for (auto& consumer : consumers_) {
      if (!consumer->gone) SLUICE_CHECK(consumer->reset || (consumer->end && consumer->sent_end));
      if (consumer->stream == nullptr) continue;
      // An orphan: calls do nothing.
      SLUICE_CHECK(consumer->stream->state() == http2::StreamState::kClosed);
      consumer->stream->SendData(base::Slice::Static("x"), true);
      consumer->stream->Consume(1);
      consumer->stream->Reset(http2::ErrorCode::kCancel);
      Release(*consumer);
    }
  }

  http2::HeaderList List(const h2::Fields& fields) {
    http2::HeaderList list(interns_);
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i % 3 == 0) {
        list.AddInterned(interns_->Intern(fields[i].first, fields[i].second));
      } else {
        list.Add(fields[i].first, fields[i].second, i % 3 == 1 ? http2::Indexing::kIndexed : http2::Indexing::kLiteral);
      }
    }
    return list;
  }

  const http2::Role role_;
  Program program_;
  const http2::SessionOptions options_;
  FrameMaker peer_;
  WireModel model_;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::deque<uint8_t> reactions_;  // to events to come
  std::vector<base::Slice> kept_;  // of what was heard
  bool keeps_ = false, own_blocks_ = true, failed_ = false;
  int in_event_ = 0;
  uint32_t last_request_ = 0;
  std::string pending_;  // said by the peer and not fed
  size_t told_bytes_ = 0, told_requests_ = 0;
  uint64_t written_ = 0, heard_ = 0;  // bytes of output
  http2::InternTable* interns_ = nullptr;
  std::unique_ptr<http2::Session> session_;
};

}  // namespace sluice::fuzz

// ConnectionTest: a Connection on a manual worker between a FramePeer and handlers that write down what they hear.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http2/connection/connection.h"
#include "support/frame_peer.h"
#include "support/h2_harness.h"
#include "support/manual_worker.h"

namespace sluice::http2 {

class ConnectionTest : public ::testing::Test, public ConnectionEvents {
 public:
  void Start(Role role, bool handshake = true) {
    auto pair = net::MemoryStream::Make(time.worker, "us", "peer", buffer_bytes);
    near = pair.near.get();
    peer = std::make_unique<test::FramePeer>(
        role == Role::kServer ? test::FramePeer::Role::kClient : test::FramePeer::Role::kServer, std::move(pair.far));
    connection = std::make_unique<Connection>(context, std::move(pair.near), role, options, *this);
    connection->Start();
    if (!handshake) return;
    peer->Send((role == Role::kServer ? h2::Preface() : "") + h2::Settings());
    Run();
    log.clear();
  }
  // A server whose client is cut off, for SETTINGS at a rate beyond the bound.
  void StartAndFlood() {
    options.session.settings_per_second = 16;
    Start(Role::kServer);
    for (int i = 0; i < 16; ++i) peer->Send(h2::Settings());
    Run();
    ASSERT_EQ(peer->Count(h2::kGoaway), 1u);
  }
  StreamEvents* OnRequest(Connection&, Stream& stream, HeaderList&& fields, bool end_stream) override {
    log.push_back("request " + std::to_string(stream.id()));
    streams[stream.id()] = &stream;
    recorders.push_back(std::make_unique<h2::Recorder>(stream.id(), log));
    if (on_request) on_request(stream);
    return recorders.back().get();
  }
  void OnCapacity(Connection&) override { ++capacity_signals; }
  void OnGoaway(Connection&) override { log.push_back("goaway"); }
  void OnTimeout(Connection&, Timeout which, size_t count) override {
    log.push_back("timeout " + std::string(ToString(which)) + (count > 0 ? " " + std::to_string(count) : ""));
  }
  void OnClosed(Connection& c, std::string_view why) override {
    EXPECT_TRUE(c.closed());
    log.push_back("closed " + std::string(why));
  }
  // Opens a stream of ours (client).
  Stream& Open() {
    recorders.push_back(std::make_unique<h2::Recorder>(0, log));
    Stream* stream = connection->Open(h2::List(context.interns, h2::GrpcRequest()), false, *recorders.back());
    SLUICE_CHECK(stream != nullptr);
    streams[stream->id()] = stream;
    return *stream;
  }
  void Release(uint32_t id) { streams.extract(id).mapped()->Release(); }
  void Run() {
    do time.Run();
    while (peer->Pump());
  }
  void Advance(base::Nanos by) {
    time.clock.Advance(by);
    Run();
  }
  void TearDown() override {
    for (auto& [id, stream] : streams) stream->Release();
    connection.reset();
    time.runtime.Shutdown();
  }

  using Strings = std::vector<std::string>;
  size_t buffer_bytes = net::MemoryStream::kBufferBytes;
  ConnectionOptions options;
  test::ManualWorker time;
  ConnectionContext context{time.worker, {}, {}, net::Dial};
  net::MemoryStream* near = nullptr;
  std::unique_ptr<test::FramePeer> peer;
  std::vector<std::string> log;
  int capacity_signals = 0;
  std::map<uint32_t, Stream*> streams;
  std::vector<std::unique_ptr<h2::Recorder>> recorders;
  std::function<void(Stream&)> on_request;
  std::unique_ptr<Connection> connection;
};

}  // namespace sluice::http2

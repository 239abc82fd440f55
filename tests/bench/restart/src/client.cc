// restart_client: gRPC C++ as it is by default (its own transparent retries, its own back-off), calling at a steady
// rate and holding streams open, while the proxy it calls is replaced. It measures what an application would notice.
//
//   restart_client --target 127.0.0.1:7070 --rate 800 --channels 4 --streams 50 --stream-seconds 15
//
// The protocol of all clients here: prints "ready" when each channel and each stream has had an answer, counts from the
// line "go" on its standard input, and at the input's end prints what it counted as one line of JSON (README.md).
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client_tally.h"
#include "json.h"

namespace sluice::bench {
namespace {

constexpr const char* kCall = "/sluice.bench.Calls/Hold";
constexpr const char* kStream = "/sluice.bench.Streams/Stream";
constexpr auto kDeadline = std::chrono::seconds(10);
constexpr auto kMessageInterval = std::chrono::milliseconds(100);
constexpr uint64_t kOutstandingMax = 5000;  // calls: beyond, the pacer holds back, and says so as lag

grpc::ByteBuffer Message() {
  const grpc::Slice slice(std::string(16, 'x'));
  return grpc::ByteBuffer(&slice, 1);
}

std::string Name(const grpc::Status& status) {
  static constexpr const char* kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto code = static_cast<size_t>(status.error_code());
  return (code < std::size(kNames) ? kNames[code] : "code " + std::to_string(code)) + (": " + status.error_message());
}

// Tells the pacer to end.
class Stop {
 public:
  void Set() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  // Whether it is set, after `time` at most.
  bool WaitFor(Clock::duration time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return stopped_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;  // guarded by mutex_
};

// One unary call; its callback deletes it.
struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer request = Message(), reply;
  Clock::time_point begun = Clock::now();
};

// One stream: a message each 100 ms, the next only after its echo. Ended by the client after its time.
class Stream final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Stream(Tally* tally, Clock::duration life) : tally_(tally), end_(Clock::now() + life) {}

  void Start(grpc::GenericStub* stub) {
    stub->PrepareBidiStreamingCall(&context_, kStream, {}, this);
    AddHold();  // for the pacer, which writes from outside of the reactions
    StartCall();
    StartRead(&reply_);
    Write();
  }

  // Called by the pacer alone, each millisecond. Returns false when the stream is over and may be deleted.
  bool Tick(Clock::time_point now) {
    if (done_.load(std::memory_order_acquire)) return false;  // pairs with OnDone
    std::unique_lock lock(mutex_);
    if ((awaits_echo_ || closing_) && now - written_ > kDeadline) {
      context_.TryCancel();  // it hangs: broken, with CANCELLED
      failed_ = true;
    }
    if (closing_ || writing_ || now < next_write_) {
      if (failed_ && !closing_) Close();
      return true;
    }
    if (failed_) {
      Close();
    } else if (now >= end_ && !awaits_echo_) {
      written_ = now;
      StartWritesDone();
      Close();
    } else if (!awaits_echo_) {
      next_write_ = now + kMessageInterval;
      lock.unlock();
      Write();
    }
    return true;
  }

  void OnReadDone(bool ok) override {
    std::lock_guard lock(mutex_);
    if (!ok) {
      failed_ = true;
      return;
    }
    tally_->StreamAnswered(Clock::now() - written_);
    answered_ = true;
    awaits_echo_ = false;
    StartRead(&reply_);
  }
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) failed_ = true;
  }
  void OnDone(const grpc::Status& status) override {
    {
      std::lock_guard lock(mutex_);
      tally_->StreamEnded(status.ok() && clean_, answered_, Name(status));
    }
    done_.store(true, std::memory_order_release);  // the pacer may delete this from here on; pairs with Tick
  }
  bool answered() {
    std::lock_guard lock(mutex_);
    return answered_;
  }

 private:
  void Write() {
    {
      std::lock_guard lock(mutex_);
      writing_ = awaits_echo_ = true;
      written_ = Clock::now();
    }
    StartWrite(&message_);
  }
  // mutex_ is held. A stream that ends before the client has ended it is broken, even with OK.
  void Close() {
    clean_ = !failed_;
    closing_ = true;
    RemoveHold();
  }

  Tally* const tally_;
  const Clock::time_point end_;
  grpc::ClientContext context_;
  grpc::ByteBuffer message_ = Message(), reply_;
  std::mutex mutex_;  // guards all below
  Clock::time_point next_write_ = Clock::now(), written_{};
  bool writing_ = false, awaits_echo_ = false, answered_ = false, failed_ = false;
  bool closing_ = false, clean_ = false;
  std::atomic<bool> done_{false};
};

class Client {
 public:
  explicit Client(const Options& options)
      : rate_(options.Number("rate", 100)),
        stream_seconds_(options.Number("stream-seconds", 15)),
        tally_("c++", static_cast<size_t>(options.Number("channels", 4))),
        streams_(static_cast<size_t>(options.Number("streams", 0))) {
    const auto channels = static_cast<size_t>(options.Number("channels", 4));
    for (size_t i = 0; i < channels; ++i) {
      grpc::ChannelArguments arguments;
      // The one thing that is not the default: without it all channels to one target share a connection.
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
          options.Text("target", "127.0.0.1:7070"), grpc::InsecureChannelCredentials(), arguments)));
    }
  }

  // Until `*stop`; streams that are open then go on to the process's end.
  void Run(Stop* stop) {
    const Clock::time_point start = Clock::now();
    uint64_t made = 0;
    bool ready = false;
    std::vector<Clock::time_point> open_at(streams_.size(), start);
    do {
      const Clock::time_point now = Clock::now();
      const auto due = static_cast<uint64_t>(std::chrono::duration<double>(now - start).count() * rate_);
      if (made < due) {
        const auto scheduled = start + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(static_cast<double>(made) / rate_));
        tally_.Lag(now - scheduled);
        while (made < due && tally_.outstanding() < kOutstandingMax) MakeCall(made++);
      }
      bool all = true;
      for (size_t i = 0; i < streams_.size(); ++i) {
        if (streams_[i] && !streams_[i]->Tick(now)) {
          streams_[i].reset();
          open_at[i] = now + kMessageInterval;
        }
        if (!streams_[i] && now >= open_at[i]) OpenStream(i);
        all = all && streams_[i] && streams_[i]->answered();
      }
      if (!ready && (all || now - start > kDeadline) && tally_.AllAnswered()) {
        ready = true;
        std::cout << "ready" << std::endl;
      }
    } while (!stop->WaitFor(std::chrono::milliseconds(1)));
    tally_.Stop();
    tally_.WaitForCalls();
  }

  Tally& tally() { return tally_; }

 private:
  void MakeCall(uint64_t number) {
    const size_t channel = number % stubs_.size();
    auto* call = new Call;
    call->context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    tally_.CallBegun();
    stubs_[channel]->UnaryCall(&call->context, kCall, {}, &call->request, &call->reply,
                               [this, call, channel](const grpc::Status& status) {
                                 const bool ok = status.ok();
                                 tally_.CallEnded(channel, ok, ok ? "" : Name(status), Clock::now() - call->begun);
                                 delete call;
                               });
  }

  // The first ones have different lives, so that they do not all end at once.
  void OpenStream(size_t index) {
    double life = stream_seconds_;
    if (opened_ < streams_.size())
      life *= 0.2 + 0.8 * static_cast<double>(index + 1) / static_cast<double>(streams_.size());
    ++opened_;
    streams_[index] = std::make_unique<Stream>(
        &tally_, std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(life)));
    streams_[index]->Start(stubs_[index % stubs_.size()].get());
  }

  const double rate_, stream_seconds_;
  Tally tally_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::unique_ptr<Stream>> streams_;
  size_t opened_ = 0;
};

int Main(const Options& options) {
  Client client(options);
  Stop stop;
  std::thread pacer([&] { client.Run(&stop); });
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "go") client.tally().Restart();
  }
  stop.Set();
  pacer.join();
  std::cout << client.tally().Json() << std::endl;
  std::_Exit(0);  // streams are open: they say nothing of the proxy any more, and gRPC's threads still have them
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(sluice::bench::Options(argc, argv)); }

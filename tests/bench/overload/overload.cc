// overload: what a proxy lets through to a backend of known capacity when more is asked for than it can do.
//
//   overload backend [--slots 10] [--mean-ms 10] [--spread 0.5]         prints "listening PORT", until its input ends
//   overload client --target HOST:PORT --rate R --seconds S --deadline-ms D [--connections C] [--capacity
//   CALLS_A_SECOND]
//
// The backend works on so many calls at once, each for mean +-spread (uniform); the others wait in its own queue, first
// come, first served. It executes what its callers have given up, as thread pools do. It answers each call with the
// number of calls that it has executed. The client's calls begin at the times of a Poisson process, whatever has become
// of those before, over C connections. Its last line has the figures of the time after a warm-up of two seconds:
//
//   goodput: calls answered OK a second, and their share of what the backend can do (--capacity; else of what it has
//   done) refused: answered RESOURCE_EXHAUSTED, of all calls late: DEADLINE_EXCEEDED, of all calls in vain: executed by
//   the backend without a client that got the answer, of all that it has executed p50, p99: of the calls answered OK
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration;

// --name VALUE, after the first word.
class Options {
 public:
  Options(int argc, char** argv) : words_(argv + 1, argv + argc) {}
  std::string Text(const std::string& name, const std::string& otherwise) const {
    for (size_t i = 0; i + 1 < words_.size(); ++i) {
      if (words_[i] == "--" + name) return words_[i + 1];
    }
    return otherwise;
  }
  double Number(const std::string& name, double otherwise) const {
    const std::string text = Text(name, "");
    return text.empty() ? otherwise : std::stod(text);
  }

 private:
  std::vector<std::string> words_;
};

grpc::ByteBuffer ToBytes(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}
std::string ToText(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return "";
  std::string out;
  for (const grpc::Slice& slice : slices) out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return out;
}

// --- The backend ---

class WorkedCall;

// Its slots are threads, which sleep in the place of work. A slot is late by what the system's timer is late; the next
// call is done in so much less time, so that the capacity is what the options say.
class Slots {
 public:
  Slots(int slots, double mean, double spread) : mean_(mean), spread_(spread) {
    for (int i = 0; i < slots; ++i) {
      threads_.emplace_back([this, i] { Work(static_cast<uint32_t>(i)); });
    }
  }
  ~Slots() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    more_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void Add(WorkedCall* call) {
    {
      std::lock_guard lock(mutex_);
      waiting_.push_back(call);
    }
    more_.notify_one();
  }
  uint64_t CountOne() { return executed_.fetch_add(1) + 1; }
  uint64_t executed() const { return executed_.load(); }

 private:
  void Work(uint32_t seed);

  const double mean_, spread_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<WorkedCall*> waiting_;  // under mutex_
  bool closed_ = false;              // under mutex_
  std::atomic<uint64_t> executed_{0};
  std::vector<std::thread> threads_;
};

// Method "Executed" answers at once.
class WorkedCall final : public grpc::ServerGenericBidiReactor {
 public:
  WorkedCall(Slots& slots, bool asks) : slots_(slots), asks_(asks) { StartRead(&request_); }
  void OnReadDone(bool) override {
    if (asks_) return Answer(slots_.executed());
    slots_.Add(this);
  }
  void Done() { Answer(slots_.CountOne()); }
  // gRPC has no more use for it, and its slot neither.
  void OnDone() override { delete this; }

 private:
  void Answer(uint64_t executed) {
    response_ = ToBytes(std::to_string(executed));
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  Slots& slots_;
  const bool asks_;
  grpc::ByteBuffer request_, response_;
};

void Slots::Work(uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> time(mean_ * (1 - spread_), mean_ * (1 + spread_));
  duration<double> late(0);
  while (true) {
    WorkedCall* call = nullptr;
    {
      std::unique_lock lock(mutex_);
      if (waiting_.empty()) late = duration<double>(0);  // an idle slot is not late
      more_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      call = waiting_.front();
      waiting_.pop_front();
    }
    const duration<double> work(time(random));
    const auto began = Clock::now();
    const auto wait = work - late;
    if (wait.count() > 0) std::this_thread::sleep_for(wait);
    late = std::min<duration<double>>(duration<double>(Clock::now() - began) - wait, duration<double>(mean_));
    call->Done();
  }
}

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(Slots& slots) : slots_(slots) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new WorkedCall(slots_, context->method().find("Executed") != std::string::npos);
  }

 private:
  Slots& slots_;
};

int RunBackend(const Options& options) {
  Slots slots(static_cast<int>(options.Number("slots", 10)), options.Number("mean-ms", 10) / 1000,
              options.Number("spread", 0.5));
  Service service(slots);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "listening " << port << std::endl;
  while (std::cin.get() != EOF) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

// --- The client ---

struct Tally {
  uint64_t calls = 0, ok = 0, refused = 0, late = 0, other = 0;
  std::vector<double> times;  // of calls that were OK, in seconds
  std::string other_text;
};

struct OneCall {
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  grpc::Status status;
  Clock::time_point began;
  bool counted = false;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

std::shared_ptr<grpc::Channel> Connect(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// By a call that the backend answers without work; it goes around the proxy.
uint64_t Executed(const std::string& backend) {
  grpc::GenericStub stub(Connect(backend));
  grpc::CompletionQueue queue;
  OneCall call;
  call.reader = stub.PrepareUnaryCall(&call.context, "/overload.Backend/Executed", ToBytes("x"), &queue);
  call.reader->StartCall();
  call.reader->Finish(&call.response, &call.status, &call);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return call.status.ok() ? std::stoull(ToText(call.response)) : 0;
}

class Client {
 public:
  explicit Client(const Options& options)
      : backend_(options.Text("backend", "")),
        rate_(options.Number("rate", 5000)),
        seconds_(options.Number("seconds", 10)),
        deadline_(options.Number("deadline-ms", 1000) / 1000),
        capacity_(options.Number("capacity", 0)) {
    const int connections = static_cast<int>(options.Number("connections", 4));
    for (int i = 0; i < connections; ++i) {
      stubs_.push_back(std::make_unique<grpc::GenericStub>(Connect(options.Text("target", ""))));
    }
  }

  int Run() {
    std::thread reader([this] { Read(); });
    Send(2, false);  // the warm-up
    const uint64_t before = Executed(backend_);
    const auto began = Clock::now();
    Send(seconds_, true);
    const double took = duration<double>(Clock::now() - began).count();
    const uint64_t executed = Executed(backend_) - before;
    while (open_.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    queue_.Shutdown();
    reader.join();
    Print(took, static_cast<double>(executed));
    return 0;
  }

 private:
  void Send(double seconds, bool counted) {
    std::mt19937_64 random(counted ? 2 : 1);
    std::exponential_distribution<double> gap(rate_);
    const auto began = Clock::now();
    for (double at = gap(random); at < seconds; at += gap(random)) {
      std::this_thread::sleep_until(began + std::chrono::duration_cast<Clock::duration>(duration<double>(at)));
      auto* call = new OneCall;
      call->counted = counted;
      call->began = Clock::now();
      call->context.set_deadline(std::chrono::system_clock::now() +
                                 std::chrono::microseconds(static_cast<int64_t>(deadline_ * 1e6)));
      grpc::GenericStub& stub = *stubs_[next_++ % stubs_.size()];
      call->reader = stub.PrepareUnaryCall(&call->context, "/overload.Backend/Work", ToBytes("x"), &queue_);
      open_.fetch_add(1);
      call->reader->StartCall();
      call->reader->Finish(&call->response, &call->status, call);
    }
  }

  void Read() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      const std::unique_ptr<OneCall> call(static_cast<OneCall*>(tag));
      open_.fetch_sub(1);
      if (call->counted) Count(*call);
    }
  }
  void Count(const OneCall& call) {
    ++tally_.calls;
    switch (call.status.error_code()) {
      case grpc::StatusCode::OK:
        ++tally_.ok;
        tally_.times.push_back(duration<double>(Clock::now() - call.began).count());
        break;
      case grpc::StatusCode::RESOURCE_EXHAUSTED:
        ++tally_.refused;
        break;
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        ++tally_.late;
        break;
      default:
        ++tally_.other;
        tally_.other_text = call.status.error_message();
    }
  }

  double Quantile(double q) {
    if (tally_.times.empty()) return 0;
    std::sort(tally_.times.begin(), tally_.times.end());
    return 1000 * tally_.times[static_cast<size_t>(q * static_cast<double>(tally_.times.size() - 1))];
  }
  void Print(double took, double executed) {
    const auto share = [](double part, double whole) { return whole == 0 ? 0 : 100 * part / whole; };
    const double ok = static_cast<double>(tally_.ok), calls = static_cast<double>(tally_.calls);
    const double best = capacity_ > 0 ? std::min(capacity_ * took, calls) : executed;
    std::printf(
        "offered %.0f/s, deadline %.0f ms: goodput %.0f/s (%.1f%% of the best), refused %.1f%%, late %.1f%%, other "
        "%.2f%%, ",
        calls / took, 1000 * deadline_, ok / took, share(ok, best), share(static_cast<double>(tally_.refused), calls),
        share(static_cast<double>(tally_.late), calls), share(static_cast<double>(tally_.other), calls));
    std::printf("executed in vain %.2f%%, p50 %.1f ms, p99 %.1f ms\n", share(std::max(0.0, executed - ok), executed),
                Quantile(0.5), Quantile(0.99));
    if (tally_.other > 0) std::printf("other: %s\n", tally_.other_text.c_str());
  }

  const std::string backend_;
  const double rate_, seconds_, deadline_, capacity_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  size_t next_ = 0;
  grpc::CompletionQueue queue_;
  std::atomic<uint64_t> open_{0};
  Tally tally_;  // of the reading thread, until it has ended
};

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const Options options(argc, argv);
  if (what == "backend") return RunBackend(options);
  if (what == "client") return Client(options).Run();
  std::cerr << "overload backend|client: see overload.cc\n";
  return 2;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }

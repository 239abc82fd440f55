// The open-loop client of the fault matrix: unary calls at a schedule that does not wait for answers, and what became
// of each.
//
//   matrix_client --target TARGET --out FILE [--rate N] [--warm S] [--seconds S] [--deadline-ms MS] [--seed N]
//   [--repeatable PERCENT]
//                 [--poison N] [--arrivals poisson|fixed] [--connections N] [--service-config FILE] [--ca FILE
//                 --server-name NAME]
//
// PERCENT of the calls go to Get, which may be repeated, the others to Put, which may not (matrix.proto); each has its
// number, from 1, in x-call. N calls a second have the x-key "poison", the others one of a thousand. It prints "begin
// T", T on CLOCK_MONOTONIC in seconds: second 0, after --warm seconds of calls, and ends when the last call has. FILE:
// a line a call, with tabs: number, method (or Poison), scheduled begin and time until the end in us, grpc-status,
// sluice-reason, sluice-processed, x-backend; "-" for what is absent. Without
// --service-config the client itself repeats nothing.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace sluice::matrix {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRateMax = 50000, kSecondsMax = 3600, kCallsMax = 4e6;
constexpr int kConnectionsMax = 64;

struct Outcome {
  bool repeatable = false, poison = false;
  Clock::time_point begun, ended;
  int status = -1;
  std::string reason = "-", processed = "-", backend = "-";
};

struct Call {
  Outcome* outcome;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;

  void Keep(const char* name, std::string& value) const {
    const auto& trailers = context.GetServerTrailingMetadata();
    if (const auto found = trailers.find(name); found != trailers.end())
      value.assign(found->second.data(), found->second.size());
  }
  void Finished() {
    outcome->ended = Clock::now();
    outcome->status = status.error_code();
    Keep("sluice-reason", outcome->reason);
    Keep("sluice-processed", outcome->processed);
    Keep("x-backend", outcome->backend);
  }
};

// Waits for moments of CLOCK_MONOTONIC.
class Pacer {
 public:
  Pacer() : fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {}
  ~Pacer() { ::close(fd_); }
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;
  void Until(Clock::time_point moment) const {
    if (moment <= Clock::now()) return;
    const int64_t ns = moment.time_since_epoch() / std::chrono::nanoseconds(1);
    const itimerspec when{{0, 0}, {ns / 1000000000, ns % 1000000000}};
    uint64_t times = 0;
    ::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &when, nullptr);
    if (::read(fd_, &times, sizeof times) < 0) std::perror("matrix_client: timerfd");
  }

 private:
  int fd_;
};

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

using Flags = std::map<std::string, std::string>;

std::shared_ptr<grpc::Channel> Connect(Flags& flags, int number) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("matrix.number", number);  // channels with equal arguments share their connections
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (flags["--service-config"].empty()) {
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  } else {
    arguments.SetServiceConfigJSON(Contents(flags["--service-config"]));
  }
  auto credentials = grpc::InsecureChannelCredentials();
  if (!flags["--ca"].empty()) {
    credentials = grpc::SslCredentials({Contents(flags["--ca"]), "", ""});
    arguments.SetSslTargetNameOverride(flags["--server-name"]);
  }
  return grpc::CreateCustomChannel(flags["--target"], credentials, arguments);
}

int Main(int argc, char** argv) {
  Flags flags = {{"--target", ""},       {"--out", ""},    {"--rate", "1000"},        {"--warm", "1"},
                 {"--seconds", "16"},    {"--seed", "1"},  {"--deadline-ms", "1000"}, {"--repeatable", "50"},
                 {"--connections", "2"}, {"--ca", ""},     {"--arrivals", "poisson"}, {"--service-config", ""},
                 {"--server-name", ""},  {"--poison", "0"}};
  bool good = argc % 2 == 1;
  for (int i = 1; good && i + 1 < argc; i += 2) {
    good = flags.count(argv[i]) != 0;
    flags[argv[i]] = argv[i + 1];
  }
  auto number = [&](const char* flag) { return std::atof(flags[flag].c_str()); };
  const double rate = number("--rate"), warm = number("--warm"), seconds = number("--seconds");
  const int connections = static_cast<int>(number("--connections"));
  const bool poisson = flags["--arrivals"] == "poisson";
  good = good && !flags["--target"].empty() && !flags["--out"].empty() && (poisson || flags["--arrivals"] == "fixed") &&
         rate >= 1 && rate <= kRateMax && seconds > 0 && seconds <= kSecondsMax && warm >= 0 && warm <= kSecondsMax &&
         rate * (warm + seconds) <= kCallsMax && connections >= 1 && connections <= kConnectionsMax;
  if (!good) {
    std::fprintf(stderr, "matrix_client: bad usage; the flags stand at the top of tests/faults/matrix/src/client.cc\n");
    return 2;
  }
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs;
  for (int i = 0; i < connections; ++i) {
    auto channel = Connect(flags, i);
    channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(5));
    stubs.push_back(std::make_unique<grpc::GenericStub>(channel));
  }
  grpc::CompletionQueue queue;
  std::thread drain([&] {
    void* tag = nullptr;
    for (bool ok = false; queue.Next(&tag, &ok);) {
      const std::unique_ptr<Call> call(static_cast<Call*>(tag));
      call->Finished();
    }
  });
  std::mt19937_64 dice(static_cast<uint64_t>(number("--seed")));
  std::exponential_distribution<> gap(rate);
  std::uniform_real_distribution<> percent(0, 100);
  std::vector<Outcome> outcomes;
  outcomes.reserve(static_cast<size_t>(2 * rate * (warm + seconds)) +
                   1000);  // elements must not move; far above Poisson's spread
  const grpc::Slice nothing("");
  const grpc::ByteBuffer request(&nothing, 1);
  const auto deadline = std::chrono::milliseconds(static_cast<int>(number("--deadline-ms")));
  const Pacer pacer;
  const Clock::time_point first = Clock::now(),
                          zero = first + std::chrono::microseconds(static_cast<int64_t>(warm * 1e6));
  std::printf("begin %.6f\n", std::chrono::duration<double>(zero.time_since_epoch()).count());
  std::fflush(stdout);
  for (double at = 0; at < warm + seconds && outcomes.size() < outcomes.capacity();
       at += poisson ? gap(dice) : 1 / rate) {
    Outcome& outcome = outcomes.emplace_back();
    outcome.repeatable = percent(dice) < number("--repeatable");
    outcome.poison = number("--poison") > 0 && percent(dice) < 100 * number("--poison") / rate;
    outcome.begun = first + std::chrono::nanoseconds(static_cast<int64_t>(at * 1e9));
    pacer.Until(outcome.begun);
    auto* call = new Call;
    call->outcome = &outcome;
    call->context.AddMetadata("x-call", std::to_string(outcomes.size()));
    call->context.AddMetadata("x-key", outcome.poison ? "poison" : std::to_string(dice() % 1000));
    call->context.set_deadline(std::chrono::system_clock::now() + deadline);
    call->reader = stubs[outcomes.size() % stubs.size()]->PrepareUnaryCall(
        &call->context, outcome.repeatable ? "/sluice.matrix.v1.Matrix/Get" : "/sluice.matrix.v1.Matrix/Put", request,
        &queue);
    call->reader->StartCall();
    call->reader->Finish(&call->reply, &call->status, call);
  }
  queue.Shutdown();
  drain.join();
  std::FILE* out = std::fopen(flags["--out"].c_str(), "w");
  if (out == nullptr) {
    std::perror(flags["--out"].c_str());
    return 1;
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& one = outcomes[i];
    std::fprintf(out, "%zu\t%s\t%lld\t%lld\t%d\t%s\t%s\t%s\n", i + 1,
                 one.poison       ? "Poison"
                 : one.repeatable ? "Get"
                                  : "Put",
                 static_cast<long long>((one.begun - zero) / std::chrono::microseconds(1)),
                 static_cast<long long>((one.ended - one.begun) / std::chrono::microseconds(1)), one.status,
                 one.reason.c_str(), one.processed.c_str(), one.backend.c_str());
  }
  return std::fclose(out) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sluice::matrix

int main(int argc, char** argv) { return sluice::matrix::Main(argc, argv); }

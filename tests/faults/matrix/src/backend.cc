// A backend of the fault matrix: a gRPC server for any method that is told over stdin how to be sick; with --raw, a
// socket with faults below gRPC.
//
//   matrix_backend --name N --listen IP:PORT --executions FILE [--service-ms MS] [--grace-ms MS] [--seed N]
//                  [--certificate FILE --key FILE] [--raw FAULT]
//
// It prints "listening IP:PORT", then answers each line of stdin with "ok" or "error: ...":
//   healthy | unavailable PERCENT | internal PERCENT | silent | cancel | late MS | slow FACTOR | noise FACTOR |
//   not_serving
// SIGTERM: GOAWAY, and calls may go on for --grace-ms. The end of stdin: exit at once. Each call is recorded in FILE by
// its x-call before it is answered, OK or not; an answer is given --service-ms (+-20%, by call) after the request.
#include <grpcpp/alarm.h>
#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "executions.h"
#include "raw_backend.h"

namespace sluice::matrix {
namespace {

// Of calls in honest noise.
constexpr double kNoiseErrorPercent = 0.5;

// How calls are answered now.
struct Mood {
  enum class Kind { kHealthy, kUnavailable, kInternal, kSilent, kCancel, kLate, kSlow, kNoise };
  Kind kind = Kind::kHealthy;
  double amount = 0;  // percent, milliseconds or a factor
};

class Backend {
 public:
  Backend(std::string name, Executions& executions, double service_ms, unsigned seed)
      : name_(std::move(name)), executions_(executions), service_ms_(service_ms), dice_(seed) {}

  const std::string& name() const { return name_; }
  void Set(Mood mood) {
    const std::lock_guard lock(mutex_);
    mood_ = mood;
  }
  // Records the call; what becomes of it: kHealthy (OK), kUnavailable, kInternal, kSilent or kCancel, and after how
  // many ms.
  Mood Decide(uint32_t call) {
    executions_.Record(call);
    const std::lock_guard lock(mutex_);
    Mood fate{Mood::Kind::kHealthy, service_ms_ * std::uniform_real_distribution<>(0.8, 1.2)(dice_)};
    switch (mood_.kind) {
      case Mood::Kind::kUnavailable:
      case Mood::Kind::kInternal:
        if (std::uniform_real_distribution<>(0, 100)(dice_) < mood_.amount)
          fate = {mood_.kind, 0};  // at once: what attracts calls
        break;
      case Mood::Kind::kSilent:
      case Mood::Kind::kCancel:
        fate.kind = mood_.kind;
        break;
      case Mood::Kind::kLate:
        fate.amount += mood_.amount;
        break;
      case Mood::Kind::kSlow:
        fate.amount *= mood_.amount;
        break;
      case Mood::Kind::kNoise:
        fate.amount = service_ms_ * mood_.amount * std::lognormal_distribution<>(0, 1)(dice_);
        if (std::uniform_real_distribution<>(0, 100)(dice_) < kNoiseErrorPercent) fate.kind = Mood::Kind::kUnavailable;
        break;
      case Mood::Kind::kHealthy:
        break;
    }
    return fate;
  }

 private:
  const std::string name_;
  Executions& executions_;
  const double service_ms_;
  std::mutex mutex_;
  Mood mood_;
  std::mt19937_64 dice_;
};

// One call: read, decided, answered after a while or held until its client gives it up.
class Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(Backend& backend, grpc::GenericCallbackServerContext* context) : backend_(backend), context_(context) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no message"));
    const auto field = context_->client_metadata().find("x-call");
    const uint32_t id = field == context_->client_metadata().end()
                            ? 0
                            : static_cast<uint32_t>(std::strtoul(
                                  std::string(field->second.data(), field->second.size()).c_str(), nullptr, 10));
    fate_ = backend_.Decide(id);
    if (fate_.kind == Mood::Kind::kSilent) {
      held_.store(true);
      if (context_->IsCancelled()) GiveUp();
      return;
    }
    if (fate_.kind == Mood::Kind::kCancel) {
      context_->TryCancel();
      return End(grpc::Status::CANCELLED);
    }
    if (fate_.amount <= 0) return Answer();
    alarm_.Set(std::chrono::system_clock::now() + std::chrono::microseconds(static_cast<int64_t>(fate_.amount * 1000)),
               [this](bool) { Answer(); });
  }
  void OnCancel() override {
    if (held_.load()) GiveUp();
  }
  void OnDone() override { delete this; }

 private:
  void GiveUp() {
    if (!ended_.exchange(true)) Finish(grpc::Status::CANCELLED);
  }
  void End(const grpc::Status& status) {
    context_->AddTrailingMetadata("x-backend", backend_.name());
    Finish(status);
  }
  void Answer() {
    if (fate_.kind == Mood::Kind::kUnavailable) return End({grpc::StatusCode::UNAVAILABLE, "sick"});
    if (fate_.kind == Mood::Kind::kInternal) return End({grpc::StatusCode::INTERNAL, "sick"});
    context_->AddTrailingMetadata("x-backend", backend_.name());
    const grpc::Slice nothing("");
    reply_ = grpc::ByteBuffer(&nothing, 1);
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
  }

  Backend& backend_;
  grpc::GenericCallbackServerContext* const context_;
  grpc::ByteBuffer request_, reply_;
  grpc::Alarm alarm_;
  Mood fate_;
  std::atomic<bool> held_{false}, ended_{false};
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(Backend& backend) : backend_(backend) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Call(backend_, context);
  }

 private:
  Backend& backend_;
};

// The answer to a line of stdin.
std::string Obey(const std::string& line, Backend& backend, grpc::HealthCheckServiceInterface& health) {
  static const std::map<std::string, Mood::Kind> kMoods = {
      {"healthy", Mood::Kind::kHealthy},    {"unavailable", Mood::Kind::kUnavailable},
      {"internal", Mood::Kind::kInternal},  {"silent", Mood::Kind::kSilent},
      {"cancel", Mood::Kind::kCancel},      {"late", Mood::Kind::kLate},
      {"slow", Mood::Kind::kSlow},          {"noise", Mood::Kind::kNoise},
      {"not_serving", Mood::Kind::kHealthy}};
  std::istringstream words(line);
  std::string word;
  double amount = 0;
  words >> word >> amount;
  const auto found = kMoods.find(word);
  if (found == kMoods.end()) return "error: no fault '" + word + "'";
  backend.Set({found->second, amount});
  health.SetServingStatus(word != "not_serving");
  return "ok";
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int RunGrpc(std::map<std::string, std::string>& flags, Executions& executions) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);  // in gRPC's threads too: one thread waits for it
  Backend backend(flags["--name"], executions, std::atof(flags["--service-ms"].c_str()),
                  static_cast<unsigned>(std::atoi(flags["--seed"].c_str())));
  Service service(backend);
  grpc::EnableDefaultHealthCheckService(true);
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!flags["--certificate"].empty()) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({Contents(flags["--key"]), Contents(flags["--certificate"])});
    credentials = grpc::SslServerCredentials(tls);
  }
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(flags["--listen"], credentials, &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::fprintf(stderr, "matrix_backend: cannot listen on %s\n", flags["--listen"].c_str());
    return 1;
  }
  const std::string& listen = flags["--listen"];
  std::printf("listening %s:%d\n", listen.substr(0, listen.rfind(':')).c_str(), port);
  std::fflush(stdout);
  std::thread([&] {
    int number = 0;
    sigwait(&term, &number);
    server->Shutdown(std::chrono::system_clock::now() +
                     std::chrono::milliseconds(std::atoi(flags["--grace-ms"].c_str())));
  }).detach();
  std::thread([&] {
    std::string line;
    while (std::getline(std::cin, line)) {
      std::printf("%s\n", Obey(line, backend, *server->GetHealthCheckService()).c_str());
      std::fflush(stdout);
    }
    ::_exit(0);
  }).detach();
  server->Wait();
  ::_exit(0);  // the thread that reads stdin is in its read
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> flags = {{"--name", ""},         {"--listen", ""},    {"--executions", ""},
                                              {"--service-ms", "10"}, {"--grace-ms", "0"}, {"--seed", "1"},
                                              {"--certificate", ""},  {"--key", ""},       {"--raw", ""}};
  bool good = argc % 2 == 1;
  for (int i = 1; good && i + 1 < argc; i += 2) {
    good = flags.count(argv[i]) != 0;
    flags[argv[i]] = argv[i + 1];
  }
  const std::string& listen = flags["--listen"];
  const size_t colon = listen.rfind(':');
  if (!good || colon == std::string::npos || flags["--executions"].empty()) {
    std::fprintf(stderr,
                 "usage: matrix_backend --name N --listen IP:PORT --executions FILE [--service-ms MS] [--grace-ms MS] "
                 "[--seed N]\n"
                 "       [--certificate FILE --key FILE] [--raw FAULT]\nFAULT: %s\n",
                 RawFaults());
    return 2;
  }
  Executions executions(flags["--executions"]);
  if (flags["--raw"].empty()) return RunGrpc(flags, executions);
  return RunRaw({flags["--raw"], listen.substr(0, colon), std::atoi(listen.substr(colon + 1).c_str()), flags["--name"],
                 std::atof(flags["--service-ms"].c_str())},
                executions);
}

}  // namespace
}  // namespace sluice::matrix

int main(int argc, char** argv) { return sluice::matrix::Main(argc, argv); }

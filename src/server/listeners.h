// Listeners: the listeners of the configuration in force, and how a reload changes them: first what can fail (the new
// sockets), then the rest, which cannot.
//
// A listener may move to an address with the same port that covers the former one, or is covered by it (0.0.0.0 and
// 127.0.0.1): both listen until the former one has handed over, so clients always find one of them.
//
// Thread safety: none; the server's reload mutex guards it. Waits for workers, so never on one of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "net/acceptor.h"
#include "proxy/options.h"

namespace sluice::proxy {
class Listener;
struct WorkerFront;
}  // namespace sluice::proxy

namespace sluice::server {

class Supervisor;

class Listeners {
 public:
  // Sockets for addresses that no listener has yet, until Apply.
  using Added = std::vector<std::pair<proxy::ListenerOptions, net::ListenSocket>>;

  Listeners();
  // StopAll was called, or the workers never ran.
  ~Listeners();

  // The workers that accept: before the first Apply, and to none before they are destroyed.
  void SetWorkers(std::vector<proxy::WorkerFront*> workers) { workers_ = std::move(workers); }

  // Has sockets for listeners, and keeps those that are made here: before the first Prepare; outlives this.
  void SetSupervisor(Supervisor& supervisor) { supervisor_ = &supervisor; }

  // Sockets of another process, for the listeners that it had: before the first Prepare.
  struct Inherited {
    std::string configured, name;  // of the listener: its address as it is written, its name
    net::ListenSocket socket;
  };
  void SetInherited(std::vector<Inherited> inherited) { inherited_ = std::move(inherited); }
  // Closes those of them that no listener has taken.
  void DropInherited();
  // Whether the process has its sockets (net::ListenSocket::SetTenure): before the first Prepare.
  void SetTenure(std::shared_ptr<const std::atomic<bool>> ours) { ours_ = std::move(ours); }
  // The listeners with their sockets, for another process.
  std::vector<const proxy::Listener*> All() const;

  // Opens the sockets that are new in `wanted`. On an error nothing has changed.
  base::Result<Added> Prepare(const std::vector<proxy::ListenerOptions>& wanted);
  // From here on `wanted` is in force: new options apply and the addresses that are gone are free when this returns.
  // `added`: of Prepare with the same list. The workers run.
  void Apply(const std::vector<proxy::ListenerOptions>& wanted, Added added);

  // Stops accepting; connections go on. Returns at once; `done` is called once, on any thread, when the last listener
  // has stopped.
  void StopAll(std::function<void()> done);
  void Clear();

  // 0 if there are not so many.
  uint16_t port(size_t index) const;

 private:
  base::Result<net::ListenSocket> OpenBeside(const proxy::ListenerOptions& options,
                                             const std::vector<proxy::ListenerOptions>& wanted);
  void Add(const proxy::ListenerOptions& options, net::ListenSocket socket);

  std::optional<net::ListenSocket> TakeInherited(const proxy::ListenerOptions& options);

  Supervisor* supervisor_ = nullptr;
  std::vector<Inherited> inherited_;
  std::shared_ptr<const std::atomic<bool>> ours_;
  std::vector<proxy::WorkerFront*> workers_;
  std::vector<std::unique_ptr<proxy::Listener>> listeners_;
};

}  // namespace sluice::server

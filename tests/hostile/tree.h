// Tree: the processes of a run: sluiced, the libgrpc backend and the node backend, with their configuration and files.
// The frame-level backend and all callers live in the harness's own process.
#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hostile/loop.h"

namespace sluice::hostile {

struct TreeOptions {
  std::string binary;        // sluiced
  std::string grpc_backend;  // hostile_grpc_backend
  std::string node_script;   // honest_backend.js; empty: a second libgrpc in its place
  std::string dir;           // for files; exists
  uint64_t memory_limit = 64 << 20;
  bool control_plane = true;
  std::string variant;  // "tight": a limit on the calls of the whole process, and a long queue at one of its clusters
};

class Child {
 public:
  // `on_line`: each line that it prints, where `log` is empty. Else both outputs go to that file.
  Child(Loop& loop, const std::vector<std::string>& command, const std::string& log,
        std::function<void(const std::string&)> on_line, const std::vector<std::string>& environment = {});
  ~Child();  // kills and waits

  // Empty while it runs; else how it ended.
  std::string Ended();
  // SIGTERM, and its exit code; -1 where it does not end in `ms`.
  int Stop(double ms);
  pid_t pid() const { return pid_; }
  uint64_t ResidentBytes() const;

 private:
  Loop& loop_;
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  std::string rest_, ended_;
};

class Tree {
 public:
  using Report = std::function<void(const std::string& violation)>;

  // `zero_port`: a server that lets no stream be opened. `plane_port`: a control plane.
  Tree(Loop& loop, TreeOptions options, uint16_t hostile_port, uint16_t zero_port, uint16_t plane_port, Report report);
  ~Tree();

  // False: something does not start; the reason was reported.
  bool Start();

  uint16_t port(const std::string& listener) const { return ports_.at(listener); }
  SSL_CTX* client_tls() const { return tls_.get(); }
  Child& sluiced() { return *sluiced_; }
  std::string log_file() const { return options_.dir + "/sluiced.log"; }
  // Connections that honest backends have ended themselves (poison).
  uint64_t ended_by_backends() const { return ended_by_backends_; }
  // Whether one has done so just now.
  bool ended_lately() const { return Loop::Now() - last_end_ < 500; }
  // The latest line of the access log for the call with this x-id; empty: there is none (yet).
  std::string LoggedCall(const std::string& id) const;
  const TreeOptions& options() const { return options_; }

 private:
  void WriteFiles();
  std::string Config() const;
  std::unique_ptr<Child> Backend(const std::string& name, const std::vector<std::string>& command);

  Loop& loop_;
  const TreeOptions options_;
  const uint16_t hostile_port_, zero_port_, plane_port_;
  const Report report_;
  std::map<std::string, uint16_t> ports_;  // listeners, backends, "http" of the admin
  std::unique_ptr<Child> grpc_, node_, sluiced_;
  std::shared_ptr<SSL_CTX> tls_;
  uint64_t ended_by_backends_ = 0;
  double last_end_ = -1e9;
};

}  // namespace sluice::hostile

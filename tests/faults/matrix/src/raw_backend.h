// RunRaw: a backend that is sick below gRPC: hand-made frames, or no HTTP/2 at all, on one thread.
#pragma once

#include <string>

#include "executions.h"

namespace sluice::matrix {

struct RawOptions {
  std::string fault;  // one of RawFaults()
  std::string host;   // an IPv4 address
  int port = 0;
  std::string name;  // the x-backend of its answers
  double service_ms = 0;
};

// Names of the faults, in one line.
const char* RawFaults();

// Serves until stdin ends; prints "listening HOST:PORT" first. Returns the exit code: 2 where there is no such fault, 1
// where it cannot listen.
int RunRaw(const RawOptions& options, Executions& executions);

}  // namespace sluice::matrix

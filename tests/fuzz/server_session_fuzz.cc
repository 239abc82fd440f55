// A whole server Session under programs of frames, cuts and actions: support/session_driver.h says what is checked.
#include "fuzz/support/session_driver.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::fuzz::SessionDriver(sluice::http2::Role::kServer, data, size).Run();
  return 0;
}

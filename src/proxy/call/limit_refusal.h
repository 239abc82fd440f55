// What limits learn of a call's answer, and what a client is told that a limit has refused: the reason, the limit, the
// wait and when to try again.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "http2/fields/header.h"
#include "limits/verdict.h"
#include "proxy/call/admission.h"

namespace sluice::proxy {

struct CallContext;

// How long calls to the cluster with this method lately took from its limits to the answer; 0: not known.
base::Nanos RecentServiceTime(const CallContext& context, const Admission& admission, const http2::HeaderList& request);

// A call that the limits let go begins to be answered, now: nothing is refunded any more. One call in kSampled tells
// how long the service took, and each that had to wait; but not one that has failed at once (`failed`).
inline constexpr uint64_t kSampled = 8;
void NoteAnswer(CallContext& context, Admission& admission, const http2::HeaderList& request, bool failed);

// `verdict`: kRefused, of `admission`. `left`: of the call's deadline.
base::Error RefusalByLimit(const Admission& admission, const limits::Verdict& verdict, base::Nanos left);

}  // namespace sluice::proxy

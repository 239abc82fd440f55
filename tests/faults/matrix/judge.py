# What Sluice's rows must show: each bound that a row misses, by name.
FAILED_PUT_MAX = 30      # of calls that may not be repeated, in a row
SLOWER_MAX = 1.3         # p99 of Get in the second half of the fault, as a multiple of what it was before
SHARE_MAX = 0.01         # of the second half's executions: of a backend that says NOT_SERVING


def misses(row, fault):
    found = []

    def bound(met, text):
        if not met:
            found.append(text)
    before, second, after = (row.phases[name] for name in ("before", "second", "after"))
    bound(row.failed["Get"] == 0, f"{row.failed['Get']} calls failed that may be repeated; 0 may")
    bound(row.twice["Put"] == 0, f"{row.twice['Put']} calls were executed twice that may not be; 0 may")
    bound(row.failed["Put"] <= FAILED_PUT_MAX, f"{row.failed['Put']} other calls failed; {FAILED_PUT_MAX} may")
    bound(row.put_failed_late == 0,
          f"{row.put_failed_late} other calls failed that were begun in the second half of the fault or after; 0 may")
    bound(row.unlabelled == 0, f"{row.unlabelled} failures of the proxy do not say whether the call was processed")
    bound(second.p99 <= SLOWER_MAX * before.p99,
          f"p99 of Get {second.p99:.1f} ms in the second half, {before.p99:.1f} before: at most {SLOWER_MAX} times as much")
    bound(not after.failed, f"{sum(after.failed.values())} calls failed after the end of the fault; 0 may")
    back = "had no calls again" if row.back is None else f"had calls again after {row.back:.1f} s"
    if row.back is not None or row.watched >= fault.back_within:  # a row may be too short to tell
        bound(row.back is not None and row.back <= fault.back_within, f"the backend {back}; {fault.back_within} s may pass")
    if fault.name == "not_serving":
        bound(row.share <= SHARE_MAX, f"the backend executed {row.share:.0%} of the calls of the second half")
    return found

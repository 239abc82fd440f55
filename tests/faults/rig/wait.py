# eventually: the one place where a fault test waits: for a state it can observe, looked at again and again, bounded.
import time

# Far more than any wait should take on a loaded machine; reaching it is a failure.
LONG_WAIT = 30


# Returns what `look` gives as soon as that is true; AssertionError, naming `what`, if it is not in time.
def eventually(look, what, bound=LONG_WAIT):
    end = time.monotonic() + bound
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"not within {bound} s: {what}")
        time.sleep(0.005)

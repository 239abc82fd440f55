# rig: what the fault tests share: real processes, calls through them, and states that are waited for.

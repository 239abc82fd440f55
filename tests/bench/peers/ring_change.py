# Row "ring change": a ring of 1,000 endpoints x 160 points, changed 100 times a second by the admin RPC under load, beside
# the same without changes. All endpoints are addresses of one backend, so calls succeed wherever the ring sends them.
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bed import fill, names_for, render
from machine import Turns, stop, wait_port
from report_table import Line
from scenarios import LISTEN_PORT

ENDPOINTS, CHANGES, RATE = 1000, 100, 20_000
BACKEND_PORT = 19200


def address(i):
    return f"127.1.{i // 250}.{i % 250 + 1}:{BACKEND_PORT}"


def lines(peers, bursts, opts):
    names = ["p99", "workers' CPU per call", "all CPU per call"]
    keys = ["p99", "worker_us", "all_us"]
    results = {False: [], True: []}
    turns = Turns(opts.lock, opts.calm)
    for rep in range(opts.reps):
        for changing in (False, True) if rep % 2 == 0 else (True, False):
            turns.take()
            record = burst(peers, opts, changing)
            print(f"  {rep} ring change {'on ' if changing else 'off'} {json.dumps(record)}", file=sys.stderr, flush=True)
            if record["ok"]:
                results[changing].append(record)
    turns.release()

    def median(changing, key):
        return statistics.median(r[key] for r in results[changing]) if results[changing] else None

    rate = median(True, "changes_per_s")
    return [Line("ring change", f"{name}, of no change", median(True, key), median(False, key), 1.05,
                 note="" if rate is None else f"{rate:.0f} changes/s") for name, key in zip(names, keys)]


def burst(peers, opts, changing):
    """One load of RATE calls/s through fresh processes, nothing pinned."""
    run = opts.scratch / "ring"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    names = names_for(opts, run, ENDPOINTS=", ".join(f'"{address(i)}"' for i in range(ENDPOINTS)))
    names["CONF"] = render("sluice-ring.yaml", names, run)
    calls = int(RATE * 3 * max(opts.quick, 0.3))
    children = []
    try:
        start = lambda cmd, **kw: children.append(subprocess.Popen([str(c) for c in cmd], **kw)) or children[-1]
        start([opts.programs / "backend", "--listen", f"0.0.0.0:{BACKEND_PORT}"], stderr=subprocess.DEVNULL)
        proxy = start([fill(c, names) for c in peers["sluice"]["cmd"]], cwd=run, stdout=open(run / "log", "w"),
                      stderr=subprocess.STDOUT)
        wait_port(LISTEN_PORT, proxy)
        idle = threads(proxy.pid)
        load = [opts.programs / "load_client", "--connect", f"127.0.0.1:{LISTEN_PORT}", "-m", "100", "--unique", "--timeout", "20"]
        subprocess.run([str(x) for x in load + ["-n", "5000"]], check=True, stdout=subprocess.DEVNULL, timeout=60)
        warm = threads(proxy.pid)
        worker = max(warm, key=lambda tid: warm[tid] - idle.get(tid, 0))  # there is one; only calls have cost anything since
        changer = start([sys.executable, __file__, opts.proto, run / "admin.sock", run], stdout=subprocess.PIPE, text=True) \
            if changing else None
        if changer:
            changer.stdout.readline()  # it has changed something
        before, t0 = threads(proxy.pid), time.time()
        out = subprocess.run([str(x) for x in load + ["-n", calls, "--rate", RATE]], capture_output=True, text=True, timeout=120)
        after, seconds = threads(proxy.pid), time.time() - t0
        changes = 0.0
        if changer:
            changer.terminate()
            changes = float(changer.communicate(timeout=10)[0].split()[-1])
        result = json.loads(out.stdout[out.stdout.index("{"):])
        used = {tid: (ns - before.get(tid, 0)) / 1e3 / calls for tid, ns in after.items()}
        return dict(ok=bool(result.get("ok")), p50=result["p50_us"], p99=result["p99_us"], seconds=round(seconds, 2), changes_per_s=changes,
                    all_us=sum(used.values()), worker_us=used[worker])
    finally:
        for child in reversed(children):
            stop(child)
        shutil.rmtree(run, ignore_errors=True)


def threads(pid):
    """ns on CPU by thread."""
    return {task.name: int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()}


def change(proto, socket, folder):
    """Runs until SIGTERM: reweights one endpoint after the other, CHANGES times a second; prints how many a second it were."""
    import signal
    subprocess.run(["protoc", "-I", proto, "--python_out", folder, "sluice/admin/v1/admin.proto"], check=True)
    sys.path.insert(0, folder)
    import grpc
    from sluice.admin.v1 import admin_pb2 as pb
    call = grpc.insecure_channel(f"unix:{socket}").unary_unary(
        "/sluice.admin.v1.Admin/ChangeEndpoints", request_serializer=pb.ChangeEndpointsRequest.SerializeToString,
        response_deserializer=pb.ChangeEndpointsResponse.FromString)
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))
    start, done = None, 0
    while not stopping:
        name, weight = address(done % ENDPOINTS), 2.0 if done // ENDPOINTS % 2 == 0 else 1.0
        call(pb.ChangeEndpointsRequest(cluster="c", kind=pb.ChangeEndpointsRequest.KIND_REWEIGHT,
                                       endpoints=[pb.EndpointSpec(name=name, weight=weight)]), timeout=30)
        if start is None:
            print("changed", flush=True)
            start = time.time()
        done += 1
        time.sleep(max(0.0, start + done / CHANGES - time.time()))
    print((done - 1) / (time.time() - start))


if __name__ == "__main__":
    change(*sys.argv[1:])

# Bed: one backend and one proxy, started afresh for a burst of calls and ended with it; and the burst itself, measured.
import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

from machine import cpu, cpu_delta, descendants, others, pinned, stop, totals, wait_calm, wait_port
from scenarios import COLLECTOR_PORT, CONF, HEADERS, HERE, LISTEN_PORT, UP_PORTS, calls_for, grpc_message

FOREIGN_MAX = 0.08  # of a core, by other programs: above it a burst is disturbed
CORES = {"2core": ("0", "1"), "raw": ("0", "1"), "1core": ("1", "1"), "free": ("0,1", "0,1")}  # layout -> proxy's, load's


def fill(text, names):
    """@NAME@ becomes its value, also inside values."""
    for _ in range(3):
        text = re.sub(r"@([A-Z0-9_]+)@", lambda m: str(names[m[1]]) if m[1] in names else m[0], text)
    return text


def names_for(opts, run, **more):
    """What peers.toml and the templates in conf/ may name."""
    names = dict(LISTEN=f"127.0.0.1:{LISTEN_PORT}", LISTEN_HOST="127.0.0.1", LISTEN_PORT=LISTEN_PORT,
                 LISTEN_COMMA=f"127.0.0.1,{LISTEN_PORT}", WORKERS=1, PYTHON=sys.executable, COLLECTOR_PORT=COLLECTOR_PORT, RUN=run,
                 BUILD=opts.programs, SLUICED=opts.sluiced, HERE=HERE)
    for i, port in enumerate(UP_PORTS, 1):
        names |= {f"UP{i}": f"127.0.0.1:{port}", f"UP{i}_HOST": "127.0.0.1", f"UP{i}_PORT": port, f"UP{i}_COMMA": f"127.0.0.1,{port}"}
    return names | more


def render(name, names, run):
    """The template conf/NAME, filled in, in the scratch folder."""
    path = run / name
    path.write_text(fill((CONF / name).read_text(), names))
    return path


class Bed:
    def __init__(self, name, peer, scenario, opts, verify=False):
        self.name, self.peer, self.scenario, self.opts, self.verify = name, peer, scenario, opts, verify
        self.run = opts.scratch / str(os.getpid())
        self.backend = self.proxy = self.spinner = self.beside = None

    def __enter__(self):
        scenario, direct = self.scenario, not self.peer["cmd"]
        shutil.rmtree(self.run, ignore_errors=True)
        self.run.mkdir(parents=True)
        proxy_cores, self.load_cores = CORES[scenario["layout"]]
        self.polling = ["--poll"] if scenario["layout"] == "2core" else []
        if self.polling and not direct:
            self.spinner = subprocess.Popen([self.opts.programs / "spin", proxy_cores])
        try:
            self.start_backend(proxy_cores if direct else self.load_cores)
            self.port = UP_PORTS[0] if direct else LISTEN_PORT
            if not direct:
                self.start_proxy(proxy_cores)
        except Exception as error:
            log = self.run / "proxy.log"
            text = log.read_text()[-2000:] if log.exists() else ""
            self.__exit__()
            raise RuntimeError(f"{self.name}: {error}\n{text}") from None
        return self

    def start_backend(self, cores):
        s = self.scenario
        command = [self.opts.programs / "backend", "--listen", ",".join(f"127.0.0.1:{p}" for p in UP_PORTS), "--req-bytes", s["req"],
                   "--resp-bytes", s["resp"], "--stats", self.run / "stats", *self.polling]
        command += (["--verify"] if self.verify else []) + s.get("backend", [])
        self.backend = subprocess.Popen(pinned(cores, command), stdout=subprocess.DEVNULL, stderr=open(self.run / "backend.log", "w"))
        for port in UP_PORTS:
            wait_port(port, self.backend)

    def start_proxy(self, cores):
        settings = self.peer.get("vars", {}) | (self.peer.get("bulk", {}) if self.scenario.get("bulk") else {})
        names = settings | names_for(self.opts, self.run, WORKERS=self.scenario.get("workers", 1))
        if "beside" in self.peer:
            self.beside = subprocess.Popen(pinned(self.load_cores, [fill(word, names) for word in self.peer["beside"]]), cwd=self.run,
                                           stdout=open(self.run / "beside.log", "w"), stderr=subprocess.STDOUT)
            wait_port(COLLECTOR_PORT, self.beside)
        if "conf" in self.peer:
            names["CONF"] = render(self.peer["conf"], names, self.run)
        self.proxy = subprocess.Popen(pinned(cores, [fill(word, names) for word in self.peer["cmd"]]), cwd=self.run,
                                      stdout=open(self.run / "proxy.log", "w"), stderr=subprocess.STDOUT)
        wait_port(LISTEN_PORT, self.proxy)
        time.sleep(0.15)  # a peer that forks may listen before its worker is there

    def __exit__(self, *_):
        for process in (self.proxy, self.beside, self.backend, self.spinner):
            stop(process)
        shutil.rmtree(self.run, ignore_errors=True)

    def pids(self):
        return descendants((self.proxy or self.backend).pid)

    def stats(self):
        names = "requests bad_len bad_hdr conns rst goaway reads writes".split()
        return dict(zip(names, struct.unpack(f"<{len(names)}Q", (self.run / "stats").read_bytes()[:8 * len(names)])))

    def load(self, calls, tool=None, args=None, c=None, m=None):
        """Makes the calls: (the load tool's result, its CPU in us)."""
        s = self.scenario
        c, m = c or s["c"], m or s["m"]
        calls = max(calls, c)
        ours = (tool or s["tool"]) == "load_client"
        if ours:
            command = [self.opts.programs / "load_client", "--connect", f"127.0.0.1:{self.port}", "-n", calls, "-c", c, "-m", m, "--req-bytes",
                       s["req"], "--resp-bytes", s["resp"], "--timeout", 20, *self.polling, *(s.get("args", []) if args is None else args)]
        else:
            body = self.run / "request.bin"
            body.write_bytes(grpc_message(s["req"]))
            command = ["h2load", "-t1", "-c", c, "-m", m, "-n", calls, "-N", "20s", f"--data={body}"]
            for name, value in HEADERS.items():
                command += ["-H", f"{name}: {value}"]
            command += [f"http://127.0.0.1:{self.port}/pkg.Service/Method"]
        process = subprocess.Popen(pinned(self.load_cores, command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        used = (usage.ru_utime + usage.ru_stime) * 1e6
        if not ours:
            return h2load_result(out, calls, s["resp"]), used
        return (json.loads(out[out.index("{"):]) if "{" in out else dict(ok=False, error=out[-500:])), used


def h2load_result(out, calls, response_bytes):
    """h2load sees statuses and bytes, not missing trailers or wrong bytes: each burst ends with verified calls besides."""
    def number(pattern, missing=-1):
        found = re.search(pattern, out)
        return float(found[1]) if found else missing
    unit = {"us": 1, "ms": 1e3, "s": 1e6}
    mean = re.search(r"time for request:\s+\S+\s+\S+\s+([\d.]+)(us|ms|s)\b", out)
    succeeded, good = number(r"(\d+) succeeded"), number(r"status codes: (\d+) 2xx")
    failed = [number(rf"(\d+) {word}") for word in ("failed", "errored", "timeout")]
    ok = succeeded == good == calls and failed == [0, 0, 0] and number(r"\((\d+)\) data") == calls * (5 + response_bytes)
    result = dict(ok=ok, calls=calls, failed=failed[0], rps=number(r"([\d.]+) req/s", 0),
                  mean_us=float(mean[1]) * unit[mean[2]] if mean else 0)
    return result if ok else result | dict(error=out[-800:])


def sample(bed, name, scenario_name, calls, opts):
    """One measured burst through a proxy that is up and warm."""
    pids, backend, beside = bed.pids(), [bed.backend.pid], [bed.beside.pid] if bed.beside else []
    ours = set(pids + backend + beside + [os.getpid()] + ([bed.spinner.pid] if bed.spinner else []))
    before = others(ours), bed.stats(), totals(), cpu(pids), cpu(backend), time.time(), cpu(beside)
    result, client_us = bed.load(calls)
    after = others(ours), bed.stats(), totals(), cpu(bed.pids()), cpu(backend), time.time(), cpu(beside)
    proxy, neighbour, seconds = cpu_delta(before[3], after[3]), cpu_delta(before[4], after[4]), after[5] - before[5]
    stats, before_stats = after[1], before[1]
    served, bad = stats["requests"] - before_stats["requests"], stats["bad_len"] + stats["bad_hdr"]
    known = proxy["us"] + (neighbour["us"] if bed.proxy else 0) + client_us + cpu_delta(before[6], after[6])["us"]
    cores = set(",".join(CORES[bed.scenario["layout"]]).split(","))
    steal = max((after[2]["steal"][core] - before[2]["steal"][core]) / 1e6 / seconds for core in cores)
    foreign = max((after[2]["busy"] - before[2]["busy"] - known) / 1e6 / seconds, (after[0] - before[0]) / 1e6 / seconds)
    record = dict(peer=name, scenario=scenario_name, n=calls, ok=bool(result.get("ok")) and served == calls and not bad,
                  when=time.strftime("%FT%T"), rps=result.get("rps"), cpu_us=proxy["us"] / calls, user_us=proxy["user_us"] / calls,
                  system_us=proxy["system_us"] / calls, busiest=proxy["busiest"], switches=proxy["switches"] / calls,
                  backend_us=neighbour["us"] / calls, client_us=client_us / calls, up_conns=stats["conns"] - len(UP_PORTS), steal=steal,
                  foreign=foreign, p50=result.get("p50_us"), p99=result.get("p99_us"), mean=result.get("mean_us"),
                  disturbed=foreign > FOREIGN_MAX or steal > opts.steal)
    return record if record["ok"] else record | dict(why=dict(run=result, served=served, bad=bad, backend=stats))


def burst(name, peer, scenario_name, scenario, opts):
    """A fresh backend and proxy, a warm-up, bursts until one is undisturbed, then a verified spot check. The last is the one to quote."""
    calls = max(int(calls_for(peer, scenario) * opts.quick), scenario["c"] * scenario["m"], 20)
    with Bed(name, peer, scenario, opts) as bed:
        unique = [a for a in scenario.get("args", []) if a == "--unique"]
        warm, _ = bed.load(max(calls // 5, min(calls, 3 * scenario["c"] * scenario["m"])), args=unique)
        out = []
        for attempt in range(opts.attempts):
            if attempt:
                time.sleep(0.5)
                wait_calm(3)
            out.append(sample(bed, name, scenario_name, calls, opts))
            if not out[-1]["disturbed"]:
                break
        check, _ = bed.load(2 if scenario.get("bulk") else 200, tool="load_client", args=["--unique"], c=1, m=min(scenario["m"], 20))
        if not (warm.get("ok") and check.get("ok")):
            out[-1] |= dict(ok=False, why=dict(warm=warm, verify=check))
        return out

# Whether the benchmark can be believed: each peer carries calls that are verified at both ends, and the load client notices wrong replies.
import json

from bed import Bed
from machine import locked
from scenarios import scenario

FAULTS = ("trailers", "status", "body")  # of each 500th reply
SIZES = ((32, 32, 2000), (4096, 4096, 1000), (32, 1 << 20, 20))  # request, response, calls


def run(peers, opts):
    """Prints a line for each; returns whether all is as it should be."""
    good = True
    for fault in FAULTS:
        with locked(opts.lock), Bed("direct", {"cmd": []}, scenario("raw", "load_client", 1, 10, 5000, backend=["--fault", fault]), opts) as bed:
            result, _ = bed.load(5000)
            noticed = not result["ok"] and result["failed"] == 10
            good &= noticed
            print(f"fault {fault:9} {'noticed' if noticed else 'MISSED'} ({result.get('failed')} of 5000)", flush=True)
    for name, peer in peers.items():
        for request, response, calls in SIZES:
            try:
                with locked(opts.lock), Bed(name, peer, scenario("raw", "load_client", 2, 20, calls, request, response), opts, verify=True) as bed:
                    result, _ = bed.load(calls, args=["--unique"])
                    stats = bed.stats()
                    # A cache's hits do not reach the backend.
                    right = result["ok"] and not stats["bad_hdr"] and not stats["bad_len"] and \
                        (stats["requests"] == calls or peer.get("hits", False))
                    said = "ok" if right else f"BAD {json.dumps(result)} {json.dumps(stats)} {(bed.run / 'backend.log').read_text()[-400:]}"
            except RuntimeError as error:
                right, said = False, f"BAD {error}"
            good &= right
            print(f"{name:16} {request:5}/{response:<8} {said}", flush=True)
    return good

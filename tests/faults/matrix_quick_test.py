#!/usr/bin/python3
# matrix_quick_test.py BIN PROTO: two short rows of the fault matrix: a killed backend behind Sluice, and that the matrix counts right.
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "matrix"))
import judge  # noqa: E402
from faults import FAULTS  # noqa: E402
from measure import measure  # noqa: E402
from peers import PEERS  # noqa: E402

BIN = Path(sys.argv[1]).resolve()
SEED = 1


class MatrixQuickTest(unittest.TestCase):
    def row(self, peer, fault, seconds):
        with tempfile.TemporaryDirectory(prefix="sluice.") as folder:
            options = types.SimpleNamespace(
                build=BIN.parent, programs=BIN / "matrix", scratch=os.path.join(folder, "run"), keep=False, backends=3, rate=200,
                seconds=seconds, service_ms=10, deadline_ms=10000, seed=SEED, arrivals="poisson", repeatable=50)
            row = measure(PEERS[peer], FAULTS[fault], options)
        print(f"seed {SEED}: {row}", file=sys.stderr)
        self.assertEqual(row.note, "")
        for phase in ("before", "fault", "second", "after"):
            self.assertGreater(row.phases[phase].calls, 0, phase)
        return row

    def test_a_killed_backend_costs_at_most_the_calls_it_had(self):
        row = self.row("sluice", "kill", 6)
        self.assertEqual(row.twice["Put"], 0)
        self.assertEqual(row.failed["Get"], 0)  # those under way there were repeated
        # About one was under way there, and Poisson's arrivals have their heaps; without a retry 100 calls would fail.
        self.assertLessEqual(row.failed["Put"], 10)
        self.assertEqual(row.unlabelled, 0)
        for phase in ("before", "second", "after"):
            self.assertEqual(row.phases[phase].failed, {}, phase)
        self.assertEqual(row.share, 0)
        self.assertEqual(row.phases["before"].executed.keys(), {"b1", "b2", "b3"})

    # gRPC's own client repeats a Get after UNAVAILABLE, which had executed it, and no Put: the matrix must see both.
    def test_failures_and_second_executions_are_counted(self):
        row = self.row("grpc", "unavailable", 4)
        self.assertGreater(row.twice["Get"], 5)
        self.assertEqual(row.twice["Put"], 0)
        self.assertGreater(row.failed["Put"], 5)
        self.assertEqual(row.failed["Put"], sum(row.phases[phase].failed.get("Put UNAVAILABLE - -", 0) for phase in ("fault", "after")))
        row.failed["Put"] = judge.FAILED_PUT_MAX + 1
        row.twice["Put"] = 1
        text = "; ".join(judge.misses(row, FAULTS["unavailable"]))
        self.assertIn("other calls failed", text)
        self.assertIn("executed twice", text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)

#!/usr/bin/env python3
# cve_check_test.py: shows on made-up pages that each rule of cve_check.py can fail, and that a page in order passes.
import unittest

import cve_check

HEAD = "| class | advisories | what happens here | tests | verdict | since |\n|---|---|---|---|---|---|\n"
NAMES = {"Suite.One", "a_fuzz"}
GOOD = "| a class | CVE-2024-1 | the stream is refused at once | `Suite.One`, `a_fuzz` | handled | 0.1.0 |"


def findings(*rows):
    return cve_check.check(HEAD + "\n".join(rows), NAMES)


class CveCheckTest(unittest.TestCase):
    def test_a_page_in_order_passes(self):
        self.assertEqual(findings(GOOD, "| other | none | it does not speak this protocol | - | not applicable | - |"), [])

    def test_a_test_that_is_not_there(self):
        self.assertEqual(findings(GOOD.replace("Suite.One", "Suite.Two")), ["line 3: no test Suite.Two"])

    def test_handled_without_a_test(self):
        self.assertEqual(findings("| a | b | the stream is refused at once | none | handled | 0.1.0 |"), ["line 3: handled, and no test"])

    def test_a_verdict_that_is_none(self):
        self.assertEqual(len(findings(GOOD.replace("handled", "fine"))), 1)

    def test_no_version(self):
        self.assertEqual(findings(GOOD.replace("0.1.0", "soon")), ["line 3: no version since which it is so"])

    def test_nothing_said(self):
        self.assertEqual(findings(GOOD.replace("the stream is refused at once", "ok")), ["line 3: says nothing of what happens here"])

    def test_a_class_twice(self):
        self.assertEqual(len(findings(GOOD, GOOD)), 2)

    def test_too_few_cells_and_no_rows(self):
        self.assertEqual(findings("| a | b |"), ["line 3: 2 cells, want 6"])
        self.assertEqual(cve_check.check("nothing", NAMES), ["no rows"])


if __name__ == "__main__":
    unittest.main()

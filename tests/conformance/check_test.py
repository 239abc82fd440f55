#!/usr/bin/env python3
# check_test.py: shows on made-up pages that each rule of check.py can fail, and that a page in order passes.
import unittest

import check

LISTING = """Plain.
  One
Section4/ServerScript.
  HasItsOutcome/Ping  # GetParam() = Ping
  HasItsOutcome/PingOnAStream  # GetParam() = PingOnAStream
Section4/ClientScript.
  HasItsOutcome/Ping  # GetParam() = Ping
Section4/ClientOfTheProxy.
  DoesNoHarm/Ping  # GetParam() = Ping
Other/Kind.
  Does/This
"""


def findings(*rows):
    page = "| § | rule | server | client | proxy |\n|---|---|---|---|---|\n" + "\n".join(rows)
    return check.Checker(*check.tests_of(LISTING)).check(page)


class CheckTest(unittest.TestCase):
    def test_a_page_in_order_passes(self):
        self.assertEqual(findings("| 1 | a rule | `Ping*` | `Ping` | `Ping` |"), [])
        self.assertEqual(findings("| 1 | a | `Ping`, `PingOnAStream` | = | = |", "| 2 | b | `Plain.One` | `Kind/This` | no: as in the sessions |"),
                         ["line 3, client: no test PingOnAStream", "line 3, proxy: no test PingOnAStream"])

    def test_a_test_that_is_not_there(self):
        self.assertIn("line 4, server: no test Plain.Two",
                      findings("| 1 | a | `Ping*` | `Ping` | `Ping` |", "| 2 | b | `Plain.Two` | `Plain.One` | `Plain.One` |"))
        self.assertIn("line 4, client: no test Kind/That",
                      findings("| 1 | a | `Ping*` | `Ping` | `Ping` |", "| 2 | b | `Plain.One` | `Kind/That` | `Plain.One` |"))

    def test_a_script_of_another_role(self):
        self.assertEqual(findings("| 1 | a | `Ping*` | `PingOnAStream`, `Ping` | `Ping` |"), ["line 3, client: no test PingOnAStream"])

    def test_a_cell_with_nothing_in_it(self):
        for cell in ("", "yes", "no:", "no: x", "`Ping` and more"):
            self.assertEqual(len(findings(f"| 1 | a | `Ping*` | {cell} | `Ping` |", "| 2 | b | `Ping` | `Ping` | `Ping` |")), 1, cell)

    def test_a_row_with_too_few_cells(self):
        self.assertIn("line 4: 4 cells, want 5", findings("| 1 | a | `Ping*` | `Ping` | `Ping` |", "| 2 | b | `Ping` | `Ping` |"))

    def test_a_script_without_a_row(self):
        self.assertEqual(findings("| 1 | a | `Ping` | `Ping` | `Ping` |"), ["no row names the script ServerScript/PingOnAStream"])

    def test_a_page_without_rows(self):
        self.assertIn("no rows", findings())


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# check.py PAGE PROGRAM...: holds docs/http2-conformance.md to the tests that the programs have. Each cell of each row names
# tests or gives a reason, each test named exists in the role of its column, and each script stands in a row.
import fnmatch
import re
import subprocess
import sys

# Column of the page -> suites whose parameters are the names of scripts.
SCRIPTS = {
    "server": ["ServerScript"],
    "client": ["ClientScript"],
    "proxy": ["ClientOfTheProxy", "BackendOfTheProxy"],
}
COLUMNS = list(SCRIPTS)
REASON = re.compile(r"^no: \S.{6,}")


def tests_of(listing):
    """Names from --gtest_list_tests: (Suite.Test without parameters, Suite/Parameter with them)."""
    plain, by_parameter = set(), set()
    suite = ""
    for line in listing.split("\n"):
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        if not line.startswith(" "):
            suite = line.rstrip(".").split("/")[-1] if "/" in line else line.rstrip(".")
            continue
        name = line.strip()
        if "/" in name:
            by_parameter.add(f"{suite}/{name.split('/', 1)[1]}")
        else:
            plain.add(f"{suite}.{name}")
    return plain, by_parameter


def rows_of(page):
    """(line number, [section, rule, server, client, proxy]) of every row of the tables."""
    for number, line in enumerate(page.split("\n"), 1):
        if not line.startswith("| ") or line.startswith("| § |"):
            continue
        yield number, [cell.strip() for cell in line.strip().strip("|").split(" | ")]


class Checker:
    def __init__(self, plain, by_parameter):
        self.plain = plain
        self.by_parameter = by_parameter
        self.named = set()  # the scripts' parameters that a row names
        self.findings = []

    def check(self, page):
        rows = list(rows_of(page))
        if not rows:
            self.findings.append("no rows")
        for number, cells in rows:
            if len(cells) != 2 + len(COLUMNS):
                self.findings.append(f"line {number}: {len(cells)} cells, want {2 + len(COLUMNS)}")
                continue
            for column, cell in zip(COLUMNS, cells[2:]):
                self.check_cell(number, column, cells[2] if cell == "=" else cell)
        suites = {suite for group in SCRIPTS.values() for suite in group}
        for test in sorted(self.by_parameter - self.named):
            if test.split("/")[0] in suites:
                self.findings.append(f"no row names the script {test}")
        return self.findings

    def check_cell(self, number, column, cell):
        if cell.startswith("no:"):
            if not REASON.match(cell):
                self.findings.append(f"line {number}, {column}: a reason that says nothing: '{cell}'")
            return
        names = re.findall(r"`([^`]+)`", cell)
        if not names or re.sub(r"`[^`]+`|[, ]", "", cell):
            self.findings.append(f"line {number}, {column}: neither tests nor a reason: '{cell}'")
        for name in names:
            if not self.exists(column, name):
                self.findings.append(f"line {number}, {column}: no test {name}")

    def exists(self, column, name):
        if "." in name:
            return bool(fnmatch.filter(self.plain, name))
        patterns = [name] if "/" in name else [f"{suite}/{name}" for suite in SCRIPTS[column]]
        found = [test for pattern in patterns for test in fnmatch.filter(self.by_parameter, pattern)]
        self.named.update(found)
        return bool(found)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    plain, by_parameter = set(), set()
    for program in sys.argv[2:]:
        listing = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
        more_plain, more_by_parameter = tests_of(listing)
        plain |= more_plain
        by_parameter |= more_by_parameter
    findings = Checker(plain, by_parameter).check(page)
    for finding in findings:
        print(f"{sys.argv[1]}: {finding}")
    print(f"conformance: {len(list(rows_of(page)))} rows, {len(plain)} tests and {len(by_parameter)} parameters, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

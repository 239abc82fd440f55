#!/usr/bin/env python3
# cve_check.py PAGE SOURCE: holds docs/cve.md to the tests that the tree has. Each row has a class, advisories, what happens here, tests, a
# verdict and a version; each test named exists, and a class that is handled names one.
import os
import re
import sys

VERDICTS = {"handled", "partly", "by design", "not applicable", "open"}
COLUMNS = ["class", "advisories", "what happens here", "tests", "verdict", "since"]
# google test, a test of Python, a flood of tests/attack and a script of conformance, each by the way a source writes its name.
MACRO = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")
METHOD = re.compile(r"^\s+def (test_\w+)\(", re.MULTILINE)
FUZZER = re.compile(r"(\w+_fuzz)\.cc$")


def names_of(root):
    """Names that the column of tests may use: Suite.Test, file.py:test_name, name_fuzz, flood:name."""
    names = set()
    for folder, _, files in os.walk(root + "/tests"):
        for file in files:
            path = os.path.join(folder, file)
            if FUZZER.search(file):
                names.add(FUZZER.search(file)[1])
            if not file.endswith((".cc", ".h", ".py")):
                continue
            with open(path, encoding="utf-8") as text:
                source = text.read()
            names |= {f"{suite}.{test}" for suite, test in MACRO.findall(source)}
            if file.endswith(".py"):
                names |= {f"{file}:{test}" for test in METHOD.findall(source)}
            if "/tests/attack" in folder:
                names |= {"flood:" + name for name in re.findall(r'^\s*\{?"([a-z_ -]+)"', source, re.MULTILINE)}
    return names


def rows_of(page):
    """(line number, cells) of every row of the tables with the page's columns."""
    inside = False
    for number, line in enumerate(page.split("\n"), 1):
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if [cell.lower() for cell in cells] == COLUMNS:
            inside = True
        elif inside and not line.startswith("|---"):
            yield number, cells


def check(page, names):
    findings = []
    rows = list(rows_of(page))
    if not rows:
        findings.append("no rows")
    classes = [cells[0] for _, cells in rows]
    for number, cells in rows:
        if len(cells) != len(COLUMNS):
            findings.append(f"line {number}: {len(cells)} cells, want {len(COLUMNS)}")
            continue
        name, _, what, tests, verdict, since = cells
        named = re.findall(r"`([^`]+)`", tests)
        if classes.count(name) > 1:
            findings.append(f"line {number}: {name} stands twice")
        if verdict not in VERDICTS:
            findings.append(f"line {number}: the verdict is one of {', '.join(sorted(VERDICTS))}, not '{verdict}'")
        if verdict in ("handled", "partly") and not named:
            findings.append(f"line {number}: {verdict}, and no test")
        if len(what) < 20:
            findings.append(f"line {number}: says nothing of what happens here")
        if verdict in ("handled", "partly") and not re.match(r"^\d+\.\d+\.\d+$", since):
            findings.append(f"line {number}: no version since which it is so")
        findings += [f"line {number}: no test {test}" for test in named if test not in names]
    return findings


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    names = names_of(sys.argv[2])
    findings = check(page, names)
    for finding in findings:
        print(f"{sys.argv[1]}: {finding}")
    print(f"cve: {len(list(rows_of(page)))} classes, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

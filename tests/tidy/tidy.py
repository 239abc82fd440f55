#!/usr/bin/env python3
# tidy.py ROOT: checks the tree against rules.py; prints "path:line: rule: what (why)" and exits 1 if anything is found.
import os
import re
import sys

import mail
import pages
import prose
import rooms
import rules

SOURCE = re.compile(r"\.(h|cc)$")
COMMENTED = re.compile(r"\.(h|cc|js|proto|py|sh|cmake|yaml)$|CMakeLists\.txt$|^\.ci/run$")
TEXT = re.compile(r"\.(h|cc|js|proto|py|sh|cmake|yaml|md|txt|service|json)$|^\.ci/run$")
SKIPPED_FOLDERS = {"build", ".git", ".cache", "__pycache__", "node_modules"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Checker:
    def __init__(self, root, exceptions=None, room_exceptions=None, circles=None, posted=None):
        self.root = root
        self.findings = []
        self.exceptions = rules.EXCEPTIONS if exceptions is None else exceptions
        self.used = set()
        self.rooms = rooms.Rooms(self.report, room_exceptions, circles)
        self.mail = mail.Mail(self.report, posted=posted)
        self.pages = pages.Pages(root, self.report)
        self.prose = prose.Prose(self.report)

    def report(self, path, line, rule, what, why):
        for index, (pattern, excused, _) in enumerate(self.exceptions):
            if excused == rule and re.search(pattern, path):
                self.used.add(index)
                return
        self.findings.append(f"{path}:{line}: {rule}: {what} ({why})")

    def run(self):
        paths = sorted(self.paths())
        for path in paths:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
                text = file.read()
            self.check_file(path, text)
        for path in paths:
            if path.endswith(".md"):
                self.check_links(path)
        self.check_index(paths)
        self.check_page()
        self.rooms.finish()
        self.mail.finish()
        self.pages.finish()
        for index, (pattern, rule, _) in enumerate(self.exceptions):
            if index not in self.used:
                self.findings.append(
                    f"tests/tidy/rules.py:1: stale exception: '{pattern}' for '{rule}' excuses nothing (remove it)")
        return self.findings

    def paths(self):
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if TEXT.search(path):
                    yield path

    def check_file(self, path, text):
        lines = text.split("\n")
        self.check_layout(path, text, lines)
        for number, line in enumerate(lines, 1):
            for name, pattern, where, why in rules.LINE_RULES:
                if re.search(where, path) and re.search(pattern, line):
                    self.report(path, number, name, line.strip()[:80], why)
        self.prose.check_file(path, text)
        self.pages.add_file(path, text, strip_comments(text) if SOURCE.search(path) else text)
        if not SOURCE.search(path):
            return
        self.rooms.add_file(path, text)
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match:
                self.check_include(path, number, match.group(2), match.group(1) == '"')
        code = strip_comments_and_strings(text)
        self.mail.add_file(path, code)
        for number, line in enumerate(code.split("\n"), 1):
            for name, pattern, where, why in rules.BANNED:
                if re.search(where, path) and re.search(pattern, line):
                    self.report(path, number, name, line.strip()[:80], why)

    def check_layout(self, path, text, lines):
        if text and not text.endswith("\n"):
            self.report(path, len(lines), "end of file", "no newline at the end", "it is noise in the next diff")
        # x.cc beside x.h is told by x.h, and so is x.h's unit test.
        header = re.sub(r"(_test)?\.cc$", ".h", re.sub(r"^tests/unit/", "src/", path))
        beside = re.sub(r"\.cc$", ".h", path)
        told = path.endswith(".cc") and any(os.path.exists(os.path.join(self.root, x)) for x in (header, beside))
        if COMMENTED.search(path) and not told:
            first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
            mark = "// " if re.search(r"\.(h|cc|js|proto)$", path) else "# "
            if not first.startswith(mark) or len(first) < 12:
                self.report(path, 1, "purpose", f"the first line is not a comment ({mark}...)", "a file says first what it is for")
        if path.endswith(".h") and "#pragma once" not in lines:
            self.report(path, 1, "guard", "no #pragma once", "a header may be included twice")
        if SOURCE.search(path) or path.endswith(".py"):
            count = len(lines) - 1
            most = rules.TEST_LINES_MAX if path.startswith("tests/") else rules.LINES_MAX
            if count > most:
                self.report(path, count, "file length", f"{count} lines, at most {most}",
                            "one idea a file: split it, or list it in rules.py with the reason")

    def check_include(self, path, number, name, quoted):
        for library, pattern, where, why in rules.LIBRARIES:
            if re.search(pattern, name) and not re.search(where, path):
                self.report(path, number, "library", f"{name} is {library}", why)
        folder = path.split("/")[1] if path.startswith("src/") else None
        target = name.split("/")[0]
        if folder is None or not quoted or target not in rules.LAYERS or target == folder:
            return
        if folder not in rules.LAYERS:
            self.report(path, number, "layer", f"src/{folder} is not in the table", "every folder has its place in the order")
            return
        allowed = list(rules.LAYERS[folder])
        for layer, pattern, more in rules.LAYER_EXTENSIONS:
            if layer == folder and re.search(pattern, path):
                allowed += more
        if target not in allowed and name not in allowed:
            self.report(path, number, "layer", f"{folder} may not include {name}", rules.LAYER_REASONS[folder])

    def check_page(self):
        """The include table that people read must be the one that is held."""
        path = "docs/architecture.md"
        if not os.path.exists(os.path.join(self.root, path)):
            return
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in file if line.startswith("| ")]
        self.check_rooms_page(path, rows)
        shown = {row[0]: sorted(filter(None, row[2].split(", "))) for row in rows if len(row) == 3}
        for layer, allowed in rules.LAYERS.items():
            if shown.get(layer) != sorted(allowed):
                self.report(path, 1, "table", f"{layer} shown as {shown.get(layer)}, held as {sorted(allowed)}",
                            "the page and the check must not drift apart")

    def check_rooms_page(self, path, rows):
        shown = {(row[0], row[1]): sorted(filter(None, row[3].split(", "))) for row in rows if len(row) == 4}
        for folder, inside in rules.ROOMS.items():
            for room, allowed in inside.items():
                if shown.get((folder, room)) != sorted(allowed):
                    self.report(path, 1, "table", f"{folder}/{room} shown as {shown.get((folder, room))}, held as {sorted(allowed)}",
                                "the page and the check must not drift apart")

    def check_index(self, paths):
        """Each page is found from the first one."""
        index = "docs/README.md"
        if index not in paths:
            return
        with open(os.path.join(self.root, index), encoding="utf-8") as file:
            linked = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", file.read())}
        for path in paths:
            name = path[len("docs/"):]
            if re.fullmatch(r"docs/[^/]+\.md", path) and path != index and name not in linked:
                self.report(index, 1, "index", f"does not name {name}", "a page that is not in the list is not found")

    def check_links(self, path):
        folder = os.path.dirname(os.path.join(self.root, path))
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            lines = without_code(file.read()).split("\n")
        for number, line in enumerate(lines, 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                full = os.path.normpath(os.path.join(folder, name)) if name else os.path.join(self.root, path)
                if not os.path.exists(full):
                    self.report(path, number, "link", f"{target} leads nowhere", "a page that points to nothing is wrong")
                elif anchor and full.endswith(".md") and anchor not in anchors(full):
                    self.report(path, number, "link", f"{target}: no such heading", "a page that points to nothing is wrong")


def strip_comments(text):
    """Without comments; literals stay."""
    token = re.compile(r'(R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\')|//[^\n]*|/\*.*?\*/', re.S)
    return token.sub(lambda match: match.group(1) or " ", text)


def strip_comments_and_strings(text):
    """The same number of lines with comments and literals blanked, so that a rule sees code only."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))

    return token.sub(blank, text)


def without_code(text):
    """Markdown with fenced blocks and inline code blanked: what looks like a link there is none."""
    text = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.S | re.M)
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", text, flags=re.M):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.add(slug)
    return found


def main():
    if len(sys.argv) != 2:
        print("usage: tidy.py ROOT", file=sys.stderr)
        return 2
    findings = Checker(sys.argv[1]).run()
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

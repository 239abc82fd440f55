# prose.py: plain technical English. Finds the words of rules.DIALECT in comments, log texts, names of tests and pages.
import re

import rules

WORDS = re.compile(rules.DIALECT, re.I)
NAMES = re.compile(rules.DIALECT_NAMES)


class Prose:
    def __init__(self, report):
        self.report = report

    def check_file(self, path, text):
        for number, line in enumerate(text.split("\n"), 1):
            match = WORDS.search(line) or NAMES.search(line)
            if match:
                self.report(path, number, "dialect", f"'{match.group(0)}' in: {line.strip()[:70]}",
                            "say which party it is: client, peer, stream, waiter, caller; an active sentence with a subject")

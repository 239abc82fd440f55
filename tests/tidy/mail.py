# mail.py: no raw pointer goes from one worker to another unless rules.py says why it stays good until it is read.
import re

import rules

RULE = "raw pointer in mail"
# A member that is a pointer or a reference; functions have a parenthesis before the name ends.
POINTER = re.compile(r"[\w>]\s*(?:const\s*)?[*&]+\s*(?:const\s*)?\w+\s*(?:=[^=;]*|\{[^;{}]*\})?;")
MAIL_CLASS = re.compile(r"\b(?:class|struct)\s+(\w+)[^;{}()]*:[^;{}()]*\b(?:runtime::)?Mail\b[^;{}()]*\{")
CALL = re.compile(r"(?:\.|->)(Post|Block)\(")
LAMBDA = re.compile(r"\[([^\[\]]*)\]\s*(?:\(|\{|mutable\b)")
# What owns what it names, by its spelling.
OWNED = re.compile(r"=\s*(?:shared_from_this\(\)|std::shared_ptr<|std::make_shared<|std::weak_ptr<|std::move\()")


class Mail:
    def __init__(self, report, records=None, mails=None, posted=None):
        self.report = report
        self.records = rules.MAIL_RECORDS if records is None else records
        self.mails = rules.MAIL_CLASSES if mails is None else mails
        self.posted = rules.POSTED if posted is None else posted
        self.seen = set()
        self.folders = set()

    def add_file(self, path, code):
        if not path.startswith("src/"):
            return
        self.folders.add(path)
        for file, name in self.records:
            if file == path:
                self.check_record(path, code, name)
        for match in MAIL_CLASS.finditer(code):
            name = match.group(1)
            self.seen.add((path, name))
            if (path, name) not in self.mails:
                self.report(path, line_of(code, match.start()), RULE, f"{name} is mail that rules.py does not know",
                            "each kind of mail has its records listed, so that they can be looked at")
        for match in CALL.finditer(code):
            self.check_call(path, code, match)

    def check_record(self, path, code, name):
        match = re.search(r"\bstruct\s+" + name + r"\b[^;{]*\{", code)
        if not match:
            return
        self.seen.add((path, name))
        body = code[match.end():closing(code, match.end(), "{", "}")]
        for pointer in POINTER.finditer(flat(body)):
            self.report(path, line_of(code, match.end() + pointer.start()), RULE, pointer.group(0).strip()[:80],
                        "what it names may be gone when the item is read: MailedPtr, or a value")

    def check_call(self, path, code, match):
        arguments = code[match.end():closing(code, match.end(), "(", ")")]
        for found in LAMBDA.finditer(flat(arguments)):
            for capture in captures(found.group(1)):
                if OWNED.search(capture):
                    continue
                self.seen.add((path, capture))
                if (path, capture) not in self.posted:
                    self.report(path, line_of(code, match.start()), RULE, f"{match.group(1)} captures '{capture}'",
                                "it may be gone when the function runs: own it, or say in rules.py (POSTED) why it is not")

    def finish(self):
        """Entries that excuse nothing are taken off their lists."""
        for path, name in list(self.records) + list(self.mails) + list(self.posted):
            if path in self.folders and (path, name) not in self.seen:
                self.report("tests/tidy/rules.py", 1, RULE, f"{path} has no '{name}' any more", "a list that is stale hides what is new")


def captures(text):
    """The captures of a lambda, each with its blanks made one."""
    out, depth, start = [], 0, 0
    text = text.replace("->", ". ")
    for at, letter in enumerate(text + ","):
        depth += letter in "(<{"
        depth -= letter in ")>}"
        if letter == "," and depth == 0:
            out.append(" ".join(text[start:at].split()))
            start = at + 1
    return [capture for capture in out if capture]


def closing(code, start, opens, closes):
    """Where the bracket that was opened before `start` is closed."""
    depth = 1
    for at in range(start, len(code)):
        depth += code[at] == opens
        depth -= code[at] == closes
        if depth == 0:
            return at
    return len(code)


def flat(code):
    """The same length without what stands in braces: bodies of functions are not members, nor captures."""
    out, depth = [], 0
    for letter in code:
        depth -= letter == "}"
        out.append(letter if depth == 0 or letter == "\n" else " ")
        depth += letter == "{"
    return "".join(out)


def line_of(code, at):
    return code.count("\n", 0, at) + 1

# pages.py: what pages and comments say of the tree: files and functions that they name exist, lines are of a width that can be read,
# and each row of docs/life-of-a-call.md leads to its function.
import os
import re

import rules

PAGE = re.compile(r"^(docs/|tests/\w+/|tests/)?[^/]+\.md$")
CODE = re.compile(r"^(src|cmd|tests|proto)/.*\.(h|cc|c|py|sh|proto)$")
WORD = re.compile(r"[A-Za-z_]\w*")
# A file: with a suffix of ours. In a comment also the only word of its kind, so that prose with dots is none.
FILE = re.compile(r"(?<![\w./*<>$~-])((?:[\w.-]+/)*[\w-]+\.(?:h|cc|py|sh|md|proto)|(?:[\w.-]+/)*[\w-]*\{[\w,]+\}[\w-]*\.(?:h|cc))(?![\w/*-]|\.\w)")
FOLDER = re.compile(r"^(?:src|tests|docs|deploy|cmake|config|proto|cmd|\.ci)/[\w./{},-]*$")
FUNCTION = re.compile(r"^((?:[A-Za-z_]\w*::)+)?(~?[A-Za-z_]\w*)\([^()]*\)$|^((?:[A-Za-z_]\w*::)+)(~?[A-Za-z_]\w*)$")
MENTIONED_CALL = re.compile(r"(?<![\w:.>-])((?:[A-Za-z_]\w*::)*)([A-Z]\w*[a-z]\w*)\(\)")
MENTIONED_MEMBER = re.compile(r"(?<![\w:])((?:[A-Za-z_]\w*::)+)([A-Za-z_]\w*)")
STEP = re.compile(r"`([\w./-]+\.(?:h|cc))`?:? *`?((?:\w+::)*~?\w+)(?:\(\))?`")


class Pages:
    def __init__(self, root, report):
        self.root = root
        self.report = report
        self.paths = set()
        self.tails = set()   # every way to end a path: "call.h", "call/call.h", ...
        self.folders = set()
        self.words = {}      # path of a file of code -> the words in it, without comments
        self.code = {}       # the same -> its text without comments
        self.everywhere = set()
        self.texts = {}      # path -> text, of what is checked at the end

    def add_file(self, path, text, code):
        """code: the text without comments (with literals)."""
        self.paths.add(path)
        parts = path.split("/")
        for at in range(len(parts)):
            self.tails.add("/".join(parts[at:]))
            if at:
                self.folders.add("/".join(parts[:at]))
        if CODE.search(path):
            words = set(WORD.findall(code))
            self.words[path] = words
            self.code[path] = code
            self.everywhere |= words
        self.texts[path] = text

    def finish(self):
        for path, text in self.texts.items():
            if PAGE.search(path):
                self.check_width(path, text)
                if not re.search(rules.PAGES_OF_THE_PAST, path):
                    self.check_page(path, text)
            elif re.search(r"^(src|cmd|tests)/.*\.(h|cc)$", path):
                self.check_comments(path, text)
        self.check_life()

    def check_width(self, path, text):
        fenced = False
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            prose = not fenced and not line.lstrip().startswith("|") and not line.startswith("    ")
            if prose and len(line) > rules.PAGE_WIDTH and " " in line.strip():
                self.report(path, number, "width", f"{len(line)} columns, at most {rules.PAGE_WIDTH}",
                            "a page is read beside the code")

    def check_page(self, path, text):
        text = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S | re.M)
        for number, line in enumerate(text.split("\n"), 1):
            for span in re.findall(r"`([^`]+)`", line):
                self.check_span(path, number, span)

    def check_span(self, path, number, span):
        names = span.split()
        if names and FOLDER.match(names[0]):
            self.need_file(path, number, names[0])
        elif re.fullmatch(r"(" + "|".join(rules.LAYERS) + r")/[a-z][a-z_/]*", span):
            self.need_file(path, number, "src/" + span)
        for name in names:
            if FILE.fullmatch(name) and not FOLDER.match(name):
                self.need_file(path, number, name)
        match = FUNCTION.match(span)
        if match:
            self.need_function(path, number, match.group(1) or match.group(3) or "", match.group(2) or match.group(4))

    def check_comments(self, path, text):
        for number, line in enumerate(text.split("\n"), 1):
            at = comment_start(line)
            if at is None:
                continue
            comment = line[at:]
            for match in FILE.finditer(comment):
                self.need_file(path, number, match.group(1))
            if ";" in comment:
                continue  # an example in code
            for match in list(MENTIONED_CALL.finditer(comment)) + list(MENTIONED_MEMBER.finditer(comment)):
                self.need_function(path, number, match.group(1), match.group(2))

    def need_file(self, path, number, name):
        for one in expand(name.rstrip("/")):
            if one in self.tails or one in self.folders or re.search(rules.FILES_ELSEWHERE, one):
                continue
            # A file of another kind (tests/cppcheck.supp), or a unit without its suffix (src/base/clock).
            if os.path.exists(os.path.join(self.root, one)) or any(path.startswith(one + ".") for path in self.paths):
                continue
            self.report(path, number, "mention", f"there is no {one}", "a page or comment that names what is gone misleads")

    def need_function(self, path, number, scope, name):
        name = name.lstrip("~")
        scopes = [part for part in scope.split("::") if part]
        if scopes and scopes[0] in rules.NAMES_ELSEWHERE or name in rules.NAMES_ELSEWHERE:
            return
        if not scopes:
            found = name in self.everywhere
        else:
            found = any(name in words and scopes[-1] in words for words in self.words.values())
        if not found:
            self.report(path, number, "mention", f"there is no {scope}{name}",
                        "a page or comment that names what is gone misleads")

    def check_life(self):
        path = rules.LIFE_OF_A_CALL
        lines = self.texts.get(path, "").split("\n")
        for number, line in enumerate(lines, 1):
            steps = STEP.findall(line)
            for file, function in steps:
                self.check_step(path, number, file, function)
            header = number < len(lines) and re.fullmatch(r"[|: -]+", lines[number])
            if line.startswith("|") and not steps and not header and not re.fullmatch(r"[|: -]+", line):
                self.report(path, number, "step", f"names no `file.cc:Function`: {line[:60]}", "the reader opens what it names")

    def check_step(self, path, number, file, function):
        full = next((p for p in (file, "src/" + file) if p in self.words), None)
        if full is None:
            self.report(path, number, "step", f"there is no {file}", "the reader opens what it names")
            return
        scope, _, name = function.rpartition("::")
        found = defines(self.code[full], scope.split("::"), name) if scope else name in self.words[full]
        if not found:
            self.report(path, number, "step", f"{file} has no {function}", "the reader looks for it there")


def defines(code, scopes, name):
    """Whether `code` defines scopes::name: outside of the class, or as a word inside of its body. Inner classes may stand in outer ones."""
    scope = "".join(rf"(?:{outer}::)?" for outer in scopes[:-1]) + scopes[-1]
    if re.search(rf"^(?:\S.*[ *&])?{'::'.join(scopes)}::{name}\b", code, re.M):
        return True
    bodies = re.finditer(rf"^( *)(?:class|struct) (?:\w+\([^)]*\) )?{scope}\b(?!::)[^;{{]*\{{(?:[^\n]*\}};$|.*?^\1\}})", code, re.S | re.M)
    return any(re.search(rf"(?<!\w){name}\b", body.group(0)) for body in bodies)


def comment_start(line):
    """Where a // comment begins that is not in a literal; None without one."""
    match = re.match(r'((?:[^"\'/]|/(?!/)|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\')*?)//', line)
    return match.end(1) if match else None


def expand(name):
    match = re.search(r"\{([\w,]+)\}", name)
    if not match:
        return [name]
    return [name[:match.start()] + part + name[match.end():] for part in match.group(1).split(",")]

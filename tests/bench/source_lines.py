#!/usr/bin/env python3
# Instructions per call of the source lines that match a pattern, from two callgrind files: of N calls and of 2N.
#
#   source_lines.py FILE_N FILE_2N N PATTERN [--list]
#
# Inlined code counts where it was written (the compiler's line tables say so), so this finds what the checks of a feature
# that is off cost wherever they ended up. The code that a compiler arranges otherwise because of them is not in it.
import argparse
import collections
import re
from pathlib import Path


def costs(path):
    """(file, line) -> instructions of its own, of a callgrind file."""
    names, file, line, skip, out = {}, None, 0, False, collections.Counter()

    def named(text):
        number, _, name = text.partition(" ")
        if name:
            names[number] = name
        return names.get(number, number)

    for text in Path(path).read_text().splitlines():
        kind, _, value = text.partition("=")
        if kind in ("fl", "fi", "fe"):
            file = named(value)
        elif kind in ("cfi", "cfl"):
            named(value)  # a callee's file may be spelled out here alone
        elif kind == "calls":
            skip = True  # the next line is the callee's cost
        elif text[:1] in "0123456789+-*" and text:
            position, _, cost = text.partition(" ")
            line = line if position == "*" else line + int(position) if position[0] in "+-" else int(position)
            if not skip and cost:
                out[file, line] += int(cost.split()[0])
            skip = False
    return out


def main():
    parser = argparse.ArgumentParser(description="instructions per call of source lines that match a pattern")
    parser.add_argument("one")
    parser.add_argument("two")
    parser.add_argument("calls", type=int)
    parser.add_argument("pattern", type=re.compile)
    parser.add_argument("--list", action="store_true", help="each line, too")
    options = parser.parse_args()
    before, total, sources = costs(options.one), 0.0, {}
    for (file, line), cost in sorted(costs(options.two).items(), key=lambda item: -item[1]):
        if not file or not Path(file).is_file():
            continue
        if file not in sources:
            sources[file] = Path(file).read_text(errors="replace").splitlines()
        text = sources[file][line - 1] if 0 < line <= len(sources[file]) else ""
        per_call = (cost - before[file, line]) / options.calls
        if per_call < 0.005 or not options.pattern.search(text):
            continue
        total += per_call
        if options.list:
            print(f"{per_call:8.2f}  {'/'.join(Path(file).parts[-3:])}:{line}: {text.strip()}")
    print(f"{total:8.2f}  instructions per call in lines that match {options.pattern.pattern!r}")


if __name__ == "__main__":
    main()

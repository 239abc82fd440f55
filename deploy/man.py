#!/usr/bin/env python3
# man.py BIN OUT: the manual pages, made from what the programs say of themselves.
#
# BIN has sluiced and sluicectl; OUT gets sluiced.8, sluicectl.1 and sluice.yaml.5. SOURCE_DATE_EPOCH dates them, so that the same
# programs make the same pages.
import datetime
import os
import re
import subprocess
import sys
import time

PROGRAMS_HELP_S = 30
# A line of a list in a help text: two spaces, the term, and at least one space before what is said of it, in a column of its own; or a
# term that is too long for that, whose text stands in the next line.
TEXT_COLUMN = 32
HEADING = re.compile(r"^[A-Z][^:]*(:| *\(.*\):)?$")


def said(program, *words):
    result = subprocess.run([program, *words], check=True, capture_output=True, text=True, timeout=PROGRAMS_HELP_S)
    return result.stdout


def escaped(text):
    """As roff wants it: no control line by accident, no hyphen in place of a minus."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    return "\\&" + text if text.startswith((".", "'")) else text


def parts(lines):
    """A list's (term, text)s of `lines`: those behind a heading."""
    out = []
    for line in lines:
        if line.startswith(" " * TEXT_COLUMN) and out:
            term, text = out[-1]
            out[-1] = (term, (text + " " + line.strip()).strip())
        else:
            term, text = line[:TEXT_COLUMN].strip(), line[TEXT_COLUMN:].strip()
            if text and line[TEXT_COLUMN - 1] != " ":  # the term goes beyond the column
                term, text = line.strip(), ""
            out.append((term, text))
    return out


def blocks(text):
    """(heading or "", lines) of a help text, in its order."""
    heading, lines = "", []
    for line in text.splitlines() + [""]:
        if not line.startswith(" ") and line and HEADING.match(line) and not lines:
            heading = line.rstrip(":")
        elif line:
            lines.append(line)
        elif lines:
            yield heading, lines
            heading, lines = "", []


def list_of(lines, out):
    for term, text in parts(lines):
        out += [".TP", "\\fB" + escaped(term) + "\\fR", escaped(text) if text else "\\&"]


def sections(text, out):
    """What stands behind the usage line, each part with its heading."""
    for heading, lines in blocks(text):
        if heading in ("", "Usage") and not lines[0].startswith(" "):
            out += [".PP"] if out and out[-1] != ".PP" else []
            for line in lines:
                out += [escaped(line), ".br"]
            out.pop()
            continue
        out.append(".SH \"" + escaped(heading.upper()).replace('"', "'") + "\"")
        if heading == "Examples":
            out += [".nf"] + [escaped(line.strip()) for line in lines] + [".fi"]
        else:
            list_of(lines, out)


def body(text):
    """A help text without what it is for and its usage line."""
    lines = text.splitlines()
    usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    return lines[0], lines[usage][len("Usage: "):], "\n".join(lines[usage + 1:]).strip("\n") + "\n"


def page(name, section, version, summary, content):
    stamp = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = datetime.datetime.fromtimestamp(stamp, datetime.timezone.utc).strftime("%Y-%m-%d")
    head = [f'.TH {name.upper()} {section} "{date}" "Sluice {version}" "Sluice"', ".SH NAME", f"{escaped(name)} \\- {escaped(summary)}"]
    return "\n".join(head + content) + "\n"


def usage(line):
    return [".SH SYNOPSIS", "\\fB" + escaped(line.split()[0]) + "\\fR " + escaped(" ".join(line.split()[1:]))]


def see(*pages):
    out = [".SH SEE ALSO"]
    out += [f".BR {escaped(name)} ({section})" + ("," if i + 1 < len(pages) else "") for i, (name, section) in enumerate(pages)]
    return out


def sluiced(program, version):
    _, line, rest = body(said(program, "--help"))
    out = usage(line) + ["\\fBsluiced init\\fR [FILE]", ".SH DESCRIPTION",
                         "Sluice stands between an application and the gRPC services that it calls: it balances, limits, repeats and",
                         "caches calls as its configuration says, which can be changed while calls run."]
    out.insert(2, ".br")
    sections(rest, out)
    out += [".SH FILES", ".TP", "\\fI/etc/sluice/sluice.yaml\\fR", "the configuration that the service reads",
            ".TP", "\\fI/run/sluice/admin.sock\\fR", "where \\fBsluicectl\\fR finds the service"]
    return page("sluiced", 8, version, "gRPC sidecar proxy and load balancer", out + see(("sluicectl", 1), ("sluice.yaml", 5)))


def commands(text):
    """Names of the commands that a help text lists, in its order."""
    names = []
    for heading, lines in blocks(text):
        if heading and heading.split()[0] not in ("Flags", "Exit", "Examples", "Usage"):
            names += [term.split()[0] for term, _ in parts(lines)]
    return names


def told_of(program, path, out):
    """The flags of a command, and of those below it."""
    text = said(program, *path, "--help")
    what, line, rest = body(text)
    found = dict(blocks(rest))
    flags = [part for part in parts(found.get("Flags", [])) if not part[0].startswith("-h,")]
    below = commands(rest)
    if flags:
        out += [".SS \"" + escaped(line.replace(" [FLAG...]", "").replace('"', "'")) + "\"", escaped(what[0].upper() + what[1:]) + "."]
        for term, text in flags:
            out += [".TP", "\\fB" + escaped(term) + "\\fR", escaped(text) if text else "\\&"]
    for name in below:
        told_of(program, [*path, name], out)


def sluicectl(program, version):
    text = said(program, "--help")
    _, line, rest = body(text)
    out = usage(line) + [".SH DESCRIPTION", "Looks at and changes a running sluice daemon through its admin RPC."]
    sections(rest, out)
    out.append(".SH FLAGS OF COMMANDS")
    for name in commands(text):
        told_of(program, [name], out)
    return page("sluicectl", 1, version, "look at and change a running sluice daemon", out + see(("sluiced", 8), ("sluice.yaml", 5)))


def sluice_yaml(version):
    out = [".SH DESCRIPTION",
           "The file names what listens, the clusters of backends, and the routes that lead from one to the other. Every key has a default",
           "but those. A file that is changed is read with \\fBsystemctl reload sluiced\\fR or \\fBsluicectl reload\\fR; with an error in it",
           "nothing changes.", ".PP",
           "\\fBsluiced \\-\\-check \\-c\\fR \\fIFILE\\fR tells everything that is wrong with a file, with line and column.",
           "\\fBsluiced \\-\\-dump\\-config \\-c\\fR \\fIFILE\\fR prints it with all defaults.",
           "\\fBsluiced init\\fR writes a first one with comments.",
           ".SH EXAMPLE", ".nf", "listeners:", "  \\- address: 127.0.0.1:7070", "clusters:", "  \\- name: users", "    endpoints:",
           "      \\- 10.0.0.1:50051", "      \\- 10.0.0.2:50051", "routes:", "  \\- cluster: users",
           "    hash_by: {metadata: x\\-user\\-id}", ".fi",
           ".SH FILES", ".TP", "\\fI/usr/share/doc/sluice/examples/reference.yaml\\fR", "every key with its default and its bounds",
           ".TP", "\\fI/usr/share/doc/sluice/examples/production.yaml\\fR", "a file to start from, with reasons beside the keys"]
    return page("sluice.yaml", 5, version, "configuration of sluiced", out + see(("sluiced", 8), ("sluicectl", 1)))


def main():
    programs, target = sys.argv[1:3]
    daemon, control = os.path.join(programs, "sluiced"), os.path.join(programs, "sluicectl")
    version = said(daemon, "--version").split()[1]
    os.makedirs(target, exist_ok=True)
    for name, text in (("sluiced.8", sluiced(daemon, version)), ("sluicectl.1", sluicectl(control, version)),
                       ("sluice.yaml.5", sluice_yaml(version))):
        with open(os.path.join(target, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()

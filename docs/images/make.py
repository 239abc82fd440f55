#!/usr/bin/env python3
# make.py: draws the pictures of this folder as SVG. The figures of the charts are read from the tables of docs/performance.md and
# docs/reliability.md, so that picture and page cannot drift: a test runs it with --check, which fails where a file would change.
import os
import re
import sys
from xml.sax.saxutils import escape

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = os.path.dirname(HERE)

# Colours by name: (in light, in dark). A reader's system chooses; no script is in the files.
COLOURS = {
    "ground": ("#ffffff", "#0d1117"), "line": ("#d0d7de", "#3d444d"), "ink": ("#1f2328", "#f0f6fc"), "muted": ("#59636e", "#9198a1"),
    "ours": ("#0b62c4", "#4493f8"), "theirs": ("#afb8c1", "#656c76"), "box": ("#f6f8fa", "#151b23"), "soft": ("#ddf4ff", "#121d2f"),
    "c0": ("#c9efd1", "#0f4023"), "c1": ("#edf5c4", "#434a12"), "c2": ("#ffe2ac", "#6a4608"), "c3": ("#ffbfa9", "#7d2f12"),
    "c4": ("#f5938a", "#94221e"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


def style():
    def rules(dark):
        out = []
        for name, pair in COLOURS.items():
            out.append(f".f-{name}{{fill:{pair[dark]}}}.s-{name}{{stroke:{pair[dark]}}}")
        return "".join(out)
    return (f"<style>text{{font-family:{FONT}}}.b{{font-weight:600}}{rules(0)}"
            f"@media (prefers-color-scheme: dark){{{rules(1)}}}</style>")


class Picture:
    """Shapes and texts in the order in which they are drawn; sizes in pixels."""

    def __init__(self, width, height, title, text):
        self.width, self.height = width, height
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
                      f'aria-labelledby="t d"><title id="t">{escape(title)}</title><desc id="d">{escape(text)}</desc>', style()]
        self.box(0.5, 0.5, width - 1, height - 1, "ground", "line", 8)

    def box(self, x, y, width, height, fill, stroke=None, round_by=0):
        edge = f" s-{stroke}" if stroke else ""
        self.parts.append(f'<rect class="f-{fill}{edge}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_by}"/>')

    def text(self, x, y, words, size=13, fill="ink", anchor="start", bold=False):
        weight = " b" if bold else ""
        self.parts.append(f'<text class="f-{fill}{weight}" x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, stroke="muted", dashes="", arrow=True):
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<line class="s-{stroke}" x1="{x1:g}" y1="{y1:g}" x2="{x2 - dx * 5 * arrow:g}" y2="{y2 - dy * 5 * arrow:g}" '
                          f'stroke-width="1.5"{dash}/>')
        if arrow:
            points = [(x2, y2), (x2 - 8 * dx - 4 * dy, y2 - 8 * dy + 4 * dx), (x2 - 8 * dx + 4 * dy, y2 - 8 * dy - 4 * dx)]
            self.parts.append(f'<polygon class="f-{stroke}" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')

    def render(self):
        return "\n".join(self.parts + ["</svg>"]) + "\n"


def rows_of(page, head):
    """The cells of the table whose first line begins with `head`."""
    with open(os.path.join(PAGES, page), encoding="utf-8") as file:
        lines = file.read().split("\n")
    at = next((i for i, line in enumerate(lines) if line.startswith(head)), None)
    if at is None:
        sys.exit(f"{page} has no table that begins with: {head}")
    rows = []
    for line in [lines[at], *lines[at + 2:]]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows


def call():
    """A call's way through the proxy."""
    picture = Picture(1000, 374, "The way of a call through Sluice",
                      "From the application through route, gates, cache, limits and the choice of an endpoint to a backend, and back.")
    picture.text(24, 32, "The way of a call", 16, bold=True)
    picture.text(24, 52, "Each step may end it, with a gRPC status that says why. A response goes through as it is.", 12.5,
                 "muted")
    steps = [("route", "by service, method,", "metadata", "UNIMPLEMENTED"),
             ("gates", "checks by headers", "and client", "the gate's status"),
             ("cache", "a stored answer, or", "one being fetched", "answered here"),
             ("limits", "rates, calls under", "way; fair queues", "RESOURCE_EXHAUSTED"),
             ("endpoint", "by key on a ring;", "health, load", "UNAVAILABLE"),
             ("attempt", "retries and hedges", "within a budget", "the last status")]
    left, top, width, gap = 144, 120, 102, 12
    right = left + len(steps) * (width + gap) - gap
    picture.box(left - 14, top - 34, right - left + 28, 176, "soft", "line", 10)
    picture.text(left, top - 14, "Sluice", 13, "ours", bold=True)
    picture.text(left + 50, top - 14, "one coroutine on one worker; no lock and no hop at light load", 11.5, "muted")
    for at, (name, one, two, end) in enumerate(steps):
        x = left + at * (width + gap)
        picture.box(x, top, width, 62, "ground", "line", 6)
        picture.text(x + width / 2, top + 20, name, 13, anchor="middle", bold=True)
        picture.text(x + width / 2, top + 37, one, 9.5, "muted", "middle")
        picture.text(x + width / 2, top + 50, two, 9.5, "muted", "middle")
        if at:
            picture.line(x - gap, top + 31, x, top + 31)
        picture.line(x + width / 2, top + 62, x + width / 2, top + 92, dashes="3 3")
        picture.text(x + width / 2, top + 106, end, 9, "muted", "middle")
    picture.text(left, top + 130, "With each failure of its own the proxy says whether a backend may have worked on the call "
                 "(sluice-processed: no, maybe).", 10.5, "muted")
    picture.box(20, top, 92, 62, "box", "line", 6)
    picture.text(66, top + 27, "application", 13, anchor="middle", bold=True)
    picture.text(66, top + 44, "any gRPC client", 9.5, "muted", "middle")
    picture.line(112, top + 22, left, top + 22)
    picture.line(left - 1, top + 42, 112, top + 42)
    for at, name in enumerate(("backend a", "backend b", "backend c")):
        y = top - 32 + at * 46
        picture.box(880, y, 98, 34, "box", "line", 6)
        picture.text(929, y + 21, name, 12, anchor="middle", bold=True)
        picture.line(right, top + 31, 880, y + 17, "ours" if at == 1 else "muted", "" if at == 1 else "3 3")
    low = 300
    below = [(left - 14, "lists of endpoints", "from the file, DNS, etcd, xDS, or sluicectl:", "they change at any time, and no call fails for it"),
             (left + 370, "what is seen", "metrics, the access log, the state of each limit,", "the health of each endpoint with its evidence")]
    for x, title, one, two in below:
        picture.box(x, low, 300, 56, "box", "line", 6)
        picture.text(x + 12, low + 20, title, 12.5, bold=True)
        picture.text(x + 12, low + 35, one, 10.5, "muted")
        picture.text(x + 12, low + 48, two, 10.5, "muted")
    picture.line(left + 136, low, left + 136, top + 142, dashes="3 3")
    picture.line(left + 520, top + 142, left + 520, low, dashes="3 3")
    return picture.render()


def cpu():
    """CPU of a call beside the other proxies: the table 'All peers' of docs/performance.md."""
    head, *rows = rows_of("performance.md", "| CPU, us a call | ")
    scenarios = head[1:]
    names = {"c1 m100": "1 connection, 100 calls under way", "c4 m32": "4 connections, 32 each", "c32 m32": "32 connections, 32 each"}
    values = [(row[0], row[1:]) for row in rows]
    most = max(float(cell) for _, figures in values for cell in figures)
    height = 64 + len(scenarios) * (len(rows) * 22 + 40)
    picture = Picture(860, height, "CPU time of a call", "; ".join(f"{name}: {', '.join(figures)} us" for name, figures in values))
    picture.text(24, 32, "CPU time of a proxied call, in microseconds", 16, bold=True)
    picture.text(24, 52, "Unary calls of 32 bytes, one worker; shorter is better. How it is measured and repeated: docs/performance.md", 12.5,
                 "muted")
    y = 84
    for at, scenario in enumerate(scenarios):
        picture.text(24, y, names.get(scenario, scenario), 13, bold=True)
        y += 10
        for name, figures in values:
            ours = name.startswith("Sluice")
            width = max(float(figures[at]) / most * 560, 1.5)
            picture.text(212, y + 14, name, 12, "ink" if ours else "muted", "end", ours)
            picture.box(222, y + 3, width, 14, "ours" if ours else "theirs", None, 2)
            picture.text(222 + width + 7, y + 14, figures[at], 12, "ink", bold=ours)
            y += 22
        y += 30
    return picture.render()


CELL = re.compile(r"(\d+) \+ (\d+)(?:, (\d+) twice)?; (\d+) → (\d+) ms; (\d+)%; (.+)")


def shade(failed):
    return next((name for bound, name in ((0, "c0"), (15, "c1"), (100, "c2"), (500, "c3")) if failed <= bound), "c4")


def faults():
    """Failed calls by fault and proxy: the matrix of docs/reliability.md."""
    head, *rows = rows_of("reliability.md", "| fault | Sluice | ")
    peers, left, wide, row_height, top = head[1:], 306, 112, 25, 118
    height = top + len(rows) * row_height + 62
    picture = Picture(left + wide * len(peers) + 24, height, "Calls that fail while one backend of five is sick",
                      "A row is a fault, a column a proxy; the number is of failed calls.")
    picture.text(24, 32, "Calls that fail while one backend of five is sick", 16, bold=True)
    picture.text(24, 52, "Of some 16000 at 1000 a second, half of them of a method that may be repeated. In brackets: p99 in ms, where it", 12.5,
                 "muted")
    picture.text(24, 68, "stayed above 1.3 times the one before. Each cell in full, and the command: docs/reliability.md", 12.5, "muted")
    for at, peer in enumerate(peers):
        picture.text(left + at * wide + wide / 2, top - 12, peer, 12.5, "ours" if at == 0 else "ink", "middle", True)
    for number, row in enumerate(rows):
        y = top + number * row_height
        picture.text(24, y + 17, row[0], 12)
        for at, cell in enumerate(row[1:]):
            match = CELL.fullmatch(cell)
            if not match:
                sys.exit(f"reliability.md: {row[0]}, {peers[at]}: not a cell of the matrix: {cell}")
            failed, before, after = int(match[1]) + int(match[2]), int(match[4]), int(match[5])
            slow = after > 1.3 * before
            picture.box(left + at * wide + 1, y + 1, wide - 2, row_height - 2, shade(max(failed, 16 * slow)), None, 3)
            words = f"{failed}" + (f"  ({after})" if slow else "")
            picture.text(left + at * wide + wide / 2, y + 17, words, 12, "ink", "middle", at == 0)
    y = height - 34
    picture.text(24, y + 13, "failed calls:", 12, "muted")
    for at, (name, words) in enumerate((("c0", "none"), ("c1", "to 15"), ("c2", "to 100, or slow"), ("c3", "to 500"), ("c4", "more"))):
        x = 112 + at * 92 + 46 * (at > 2)
        picture.box(x, y, 18, 18, name, None, 3)
        picture.text(x + 24, y + 13, words, 12, "muted")
    return picture.render()


PICTURES = {"call.svg": call, "cpu.svg": cpu, "faults.svg": faults}


def main():
    stale = []
    for name, draw in PICTURES.items():
        path, text = os.path.join(HERE, name), draw()
        if sys.argv[1:] == ["--check"]:
            if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
                stale.append(name)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if stale:
        sys.exit(f"{', '.join(stale)}: not what the tables of docs/ say: run docs/images/make.py")


if __name__ == "__main__":
    main()

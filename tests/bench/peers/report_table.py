# One line a bar: what was measured, ours, theirs, the ratio and whether it is within the bar.
from dataclasses import dataclass


@dataclass
class Line:
    row: str
    what: str                    # the quantity and the peer that it is compared with
    ours: float | None = None
    theirs: float | None = None
    bar: float | None = None     # the ratio's upper bound; None: `ours` itself is bounded by `limit`
    limit: float | None = None
    unit: str = "us"
    quiet: bool = True
    note: str = ""

    def ratio(self):
        # Differences may come out negative on a noisy machine: that is no figure.
        return self.ours / self.theirs if self.ours is not None and self.theirs and self.theirs > 0 else None

    def met(self):
        if self.ours is None:
            return None
        if self.limit is not None:
            return self.ours <= self.limit
        return None if self.ratio() is None or self.bar is None else self.ratio() <= self.bar


class Table:
    def __init__(self):
        self.lines, self.complete = [], True

    def add(self, lines):
        for line in lines if isinstance(lines, list) else [lines]:
            self.lines.append(line)
            self.complete &= line.met() is not None

    def render(self):
        def number(x):
            return "-" if x is None else f"{x:.0f}" if abs(x) >= 1000 else f"{x:.3g}"
        out = [("row", "what", "ours", "theirs", "ratio", "bar", "")]
        for x in self.lines:
            met = {True: "met", False: "MISSED", None: "no figure"}[x.met()]
            bar = x.limit if x.limit is not None else x.bar
            out.append((x.row, x.what, f"{number(x.ours)} {x.unit}", "" if x.theirs is None else f"{number(x.theirs)} {x.unit}",
                        number(x.ratio()), f"<= {number(bar)}", met + ("" if x.quiet else " ~") + (f"  {x.note}" if x.note else "")))
        widths = [max(len(r[i]) for r in out) for i in range(len(out[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(r, widths)).rstrip() for r in out)

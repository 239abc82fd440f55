# rooms.py: the order inside a folder of src/: which room may include which, and that no units include each other in a circle.
import re

import rules

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


class Rooms:
    """Collects the includes of src/, then says what is wrong: check_include for each, check_circles at the end."""

    def __init__(self, report, exceptions=None, circles=None):
        self.report = report
        self.exceptions = rules.ROOM_EXCEPTIONS if exceptions is None else exceptions
        self.circles = rules.CIRCLES if circles is None else circles
        self.used = set()
        self.graph = {}   # unit -> the units of its folder that it includes
        self.places = {}  # (unit, unit) -> where: path, line

    def add_file(self, path, text):
        if not path.startswith("src/"):
            self.check_private(path, text)
            return
        name = path[len("src/"):]
        edges = self.graph.setdefault(unit(name), set())
        for number, line in enumerate(text.split("\n"), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            self.check_include(path, number, target)
            if target.split("/")[0] == name.split("/")[0] and unit(target) != unit(name):
                edges.add(unit(target))
                self.places.setdefault((unit(name), unit(target)), (path, number))

    def check_private(self, path, text):
        if path.startswith("tests/"):
            return
        for number, line in enumerate(text.split("\n"), 1):
            match = INCLUDE.match(line)
            for private in rules.PRIVATE_ROOMS:
                if match and match.group(1).startswith(private + "/"):
                    self.report(path, number, "room", f"{match.group(1)} is {private.split('/')[0]}'s own",
                                "only its folder and the tests look into it")

    def check_include(self, path, number, target):
        folder, room = place(path[len("src/"):])
        into, room_into = place(target)
        if into != folder:
            if f"{into}/{room_into}" in rules.PRIVATE_ROOMS:
                self.report(path, number, "room", f"{target} is {into}'s own", "only its folder and the tests look into it")
            return
        if folder not in rules.ROOMS or room == room_into:
            return
        if room not in rules.ROOMS[folder]:
            self.report(path, number, "room", f"src/{folder}/{room} is not in the table", "every room has its place in the order")
            return
        allowed = rules.ROOMS[folder][room]
        if room_into in allowed or target in allowed:
            return
        for index, (file, header, _) in enumerate(self.exceptions):
            if file == path and header == target:
                self.used.add(index)
                return
        self.report(path, number, "room", f"{folder}/{room} may not include {target}", rules.ROOM_REASONS[folder])

    def finish(self):
        """Reports circles, and exceptions that excuse nothing."""
        for index, (file, header, _) in enumerate(self.exceptions):
            if index not in self.used:
                self.report("tests/tidy/rules.py", 1, "stale exception", f"{file} does not include {header}", "remove it")
        in_circle = set()
        for circle in circles(self.graph):
            in_circle.update(circle)
            if any(set(circle) <= set(named) for named, _ in self.circles):
                continue
            path, number = self.places[next(edge for edge in sorted(self.places) if set(edge) <= set(circle))]
            self.report(path, number, "circle", " <-> ".join(circle),
                        "none of them can be read, tested or moved without all others: turn one include around")
        for named, _ in self.circles:
            for name in sorted(set(named) - in_circle):
                self.report("tests/tidy/rules.py", 1, "stale exception", f"{name} is in no circle", "remove it")


def unit(name):
    return re.sub(r"\.(h|cc)$", "", name)


def place(name):
    """'proxy/call/call.h' -> ('proxy', 'call'); 'proxy/options.h' -> ('proxy', '.')."""
    parts = name.split("/")
    return parts[0], parts[1] if len(parts) > 2 else "."


def circles(graph):
    """The strongly connected components of more than one unit, each sorted (Tarjan's algorithm, without recursion)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, edges = work[-1]
            for target in edges:
                if target not in graph:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    component = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        found.append(sorted(component))
    return found

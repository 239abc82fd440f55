#!/usr/bin/env python3
# metrics_check.py ROOT: the dashboard and the alert rules of deploy/, and the pages, use only metrics, labels and values that
# docs/metrics.md has (which a test of server_test holds to the code). Where promtool is installed it checks the rules, runs their tests, and parses
# each expression of the dashboard. Prints what it finds and exits 1 if anything is found.
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

DASHBOARD = "deploy/grafana/sluice.json"
RULES = "deploy/prometheus/alerts.yaml"
RULE_TESTS = "deploy/prometheus/alerts_test.yaml"
# Given by the scrape, not by us: metrics and labels.
OF_PROMETHEUS = {"up"}
OF_THE_SCRAPE = {"job", "instance"}
SELECTOR = re.compile(r"\b(sluice_\w+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)\s*(=~|!~|!=|=)\s*\"([^\"]*)\"")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
LABEL_VALUES = re.compile(r"^label_values\((.*), (\w+)\)$")


class Metrics:
    """The tables of docs/metrics.md."""

    def __init__(self, page):
        self.labels = {}   # name -> its labels
        self.values = {}   # (name, label) -> the values of a closed label
        for cells in table(page, "| metric | kind |"):
            name = quoted(cells[0])[0]
            labels = set(quoted(cells[2]))
            self.labels[name] = labels
            if cells[1] == "histogram":
                self.labels.update({name + "_bucket": labels | {"le"}, name + "_sum": labels, name + "_count": labels})
        for cells in table(page, "| label | of |"):
            for name in quoted(cells[1]):
                self.values[name, quoted(cells[0])[0]] = set(quoted(cells[2]))


def table(page, head):
    """The cells of the rows below the line that begins with head."""
    lines = page.split("\n")
    at = next((i for i, line in enumerate(lines) if line.startswith(head)), len(lines))
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def check_expression(metrics, expression):
    """What is wrong with an expression; and the labels that its series have."""
    found, labels = [], set(OF_THE_SCRAPE)
    names = 0
    for name, matchers in SELECTOR.findall(expression):
        names += 1
        if name in OF_PROMETHEUS:
            own = set()
        elif name not in metrics.labels:
            found.append(f"docs/metrics.md has no {name}")
            continue
        else:
            own = metrics.labels[name]
        labels |= own
        for label, operator, value in MATCHER.findall(matchers):
            if label not in own | OF_THE_SCRAPE:
                found.append(f"{name} has no label {label}")
            allowed = metrics.values.get((name, label))
            wanted = value.split("|") if operator in ("=~", "!~") else [value]
            if allowed is not None and not value.startswith("$"):
                found += [f"{name}: {label} is never {one}" for one in wanted if one not in allowed]
    if not names:
        found.append("names no metric")
    for group in GROUPING.findall(expression):
        found += [f"no series has the label {label}" for label in re.findall(r"\w+", group) if label not in labels]
    return found, labels


def check_text(metrics, place, expression, texts):
    """texts: what is shown beside it, with {{label}} or {{ $labels.label }}."""
    found, labels = check_expression(metrics, expression)
    for text in texts:
        for label in re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", text):
            if label not in labels:
                found.append(f"its text names the label {label}, which no series of it has")
    return [f"{place}: {one}" for one in found]


def rules_of(text):
    """(name, expression, text of the annotations) of each alert of a rules file in our layout."""
    for block in re.split(r"^ +- alert: ", text, flags=re.M)[1:]:
        name = block.split("\n", 1)[0].strip()
        match = re.search(r"^ +expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", block, re.M)
        if not match:
            yield name, "", ""
            continue
        yield name, (match.group(1) or match.group(2)), block[match.end():]


def queries_of(dashboard):
    """(place, expression, legend) of each panel and variable."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['title']!r}", target["expr"], target["legendFormat"]


def check_variables(metrics, dashboard):
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        match = LABEL_VALUES.match(variable["query"]["query"])
        found, labels = check_expression(metrics, match.group(1))
        found += [] if match.group(2) in labels else [f"no label {match.group(2)}"]
        yield from (f"{DASHBOARD}: variable {variable['name']}: {one}" for one in found)


def check_rules(metrics, text):
    found, names = [], []
    for name, expression, texts in rules_of(text):
        names.append(name)
        found += check_text(metrics, f"{RULES}: {name}", expression, [texts])
    return found, names


def check_page(metrics, place, text):
    """Metrics that a page or a configuration names, with their matchers."""
    for name, matchers in SELECTOR.findall(text):
        if name in OF_PROMETHEUS:
            continue
        if name not in metrics.labels:
            yield f"{place}: docs/metrics.md has no {name}"
        elif MATCHER.search(matchers):
            yield from (f"{place}: {one}" for one in check_expression(metrics, f"{name}{{{matchers}}}")[0])


def plain(expression):
    """An expression of the dashboard with values for Grafana's variables."""
    for variable, value in {"$__rate_interval": "1m", "$job": "sluice", "$instance": ".*", "$cluster": ".*"}.items():
        expression = expression.replace(variable, value)
    return expression


def promtool(root, dashboard):
    """What promtool finds; nothing where it is not installed."""
    if shutil.which("promtool") is None:
        print("promtool is not installed (deploy/install-deps.sh prometheus): the rules' own tests were NOT run")
        return []
    found = []
    with tempfile.TemporaryDirectory() as folder:
        panels = os.path.join(folder, "panels.yaml")
        with open(panels, "w", encoding="utf-8") as file:
            rules = [{"record": f"panel:{at}", "expr": plain(expr)} for at, (_, expr, _) in enumerate(queries_of(dashboard))]
            json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)
        for command in (["check", "rules", RULES], ["test", "rules", RULE_TESTS], ["check", "rules", panels]):
            done = subprocess.run(["promtool", *command], cwd=root, capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                found.append(f"promtool {' '.join(command)}: {done.stdout}{done.stderr}")
    return found


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def check(root):
    metrics = Metrics(read(root, "docs/metrics.md"))
    dashboard = json.loads(read(root, DASHBOARD))
    found, names = check_rules(metrics, read(root, RULES))
    queries = list(queries_of(dashboard))
    for place, expression, legend in queries:
        found += check_text(metrics, f"{DASHBOARD}: {place}", expression, [legend])
    found += check_variables(metrics, dashboard)
    for path in sorted(glob.glob("docs/*.md", root_dir=root) + glob.glob("config/*.yaml", root_dir=root)) + ["README.md", "SECURITY.md"]:
        found += check_page(metrics, path, read(root, path))
    tests, production = read(root, RULE_TESTS), read(root, "docs/production.md")
    for name in names:
        if f"alertname: {name}\n" not in tests:
            found.append(f"{RULE_TESTS}: does not try {name}")
        if f"`{name}`" not in production:
            found.append(f"docs/production.md: does not say what {name} means")
    if not metrics.labels or not names or not queries:
        found.append("no metrics, rules or panels: the check has found nothing to look at")
    return found + promtool(root, dashboard), len(names), len(queries)


def main():
    found, rules, queries = check(sys.argv[1])
    for one in found:
        print(one)
    print(f"{rules} rules, {queries} queries, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# metrics_check_test.py: shows on a made-up page that each rule of metrics_check.py can fail, and that what is in order passes.
import unittest

import metrics_check

PAGE = """
| metric | kind | labels | before a count | meaning |
|---|---|---|---|---|
| `sluice_a_total` | counter | `cluster` `reason` | always | a |
| `sluice_b_seconds` | histogram | `route` | counted | b |

| label | of | values |
|---|---|---|
| `reason` | `sluice_a_total` | `full` `late` |
"""
METRICS = metrics_check.Metrics(PAGE)


def found(expression, *texts):
    return metrics_check.check_text(METRICS, "x", expression, texts)


class MetricsCheckTest(unittest.TestCase):
    def test_what_is_in_order_passes(self):
        rate = 'sum by (job, reason) (rate(sluice_a_total{cluster="c", reason=~"full|late"}[5m])) > 0'
        self.assertEqual(found(rate, "{{ $labels.reason }}"), [])
        self.assertEqual(found("histogram_quantile(0.9, sum by (route, le) (rate(sluice_b_seconds_bucket[5m])))", "{{route}}"), [])
        self.assertEqual(found('up{job="sluice"} == 0', "{{ $labels.instance }}"), [])

    def test_a_metric_that_is_not_there(self):
        self.assertEqual(found("rate(sluice_c_total[5m])"), ["x: docs/metrics.md has no sluice_c_total"])
        self.assertEqual(found("1 > 0"), ["x: names no metric"])
        self.assertEqual(found("sluice_a_total_bucket"), ["x: docs/metrics.md has no sluice_a_total_bucket"])

    def test_a_label_that_is_not_there(self):
        self.assertEqual(found('sluice_a_total{route="r"}'), ["x: sluice_a_total has no label route"])
        self.assertEqual(found("sum by (route) (sluice_a_total)"), ["x: no series has the label route"])
        self.assertEqual(found("sluice_a_total", "{{route}}"), ["x: its text names the label route, which no series of it has"])
        self.assertEqual(found("sluice_a_total", "{{ $labels.route }}"), ["x: its text names the label route, which no series of it has"])

    def test_a_value_that_never_is(self):
        self.assertEqual(found('sluice_a_total{reason=~"full|error"}'), ["x: sluice_a_total: reason is never error"])
        self.assertEqual(found('sluice_a_total{reason!="error"}'), ["x: sluice_a_total: reason is never error"])

    def test_what_pages_name(self):
        self.assertEqual(list(metrics_check.check_page(METRICS, "p", 'see `sluice_a_total{reason="full"}`, sluice_b_seconds, up')), [])
        self.assertEqual(list(metrics_check.check_page(METRICS, "p", 'sluice_c_total, sluice_a_total{cluster,reason}, sluice_a_total{reason="no"}')),
                         ["p: docs/metrics.md has no sluice_c_total", "p: sluice_a_total: reason is never no"])

    def test_rules_are_found_in_the_file(self):
        text = """groups:
  - name: g
    rules:
      - alert: One
        expr: sluice_a_total > 0
        annotations: {summary: "{{ $labels.cluster }}"}
      - alert: Two
        expr: |
          sluice_a_total
            > sluice_d_total
        annotations: {summary: "{{ $labels.key }}"}
      - alert: Three
        for: 5m
"""
        findings, names = metrics_check.check_rules(METRICS, text)
        self.assertEqual(names, ["One", "Two", "Three"])
        self.assertEqual(findings, [
            "deploy/prometheus/alerts.yaml: Two: docs/metrics.md has no sluice_d_total",
            "deploy/prometheus/alerts.yaml: Two: its text names the label key, which no series of it has",
            "deploy/prometheus/alerts.yaml: Three: names no metric"])

    def test_queries_of_a_dashboard(self):
        variable = {"type": "query", "name": "v", "query": {"query": 'label_values(sluice_a_total{job="$job"}, route)'}}
        dashboard = {"panels": [{"title": "row"}, {"title": "t", "targets": [{"expr": "sluice_a_total", "legendFormat": "l"}]}],
                     "templating": {"list": [variable]}}
        self.assertEqual(list(metrics_check.queries_of(dashboard)), [("panel 't'", "sluice_a_total", "l")])
        self.assertEqual(list(metrics_check.check_variables(METRICS, dashboard)),
                         ["deploy/grafana/sluice.json: variable v: no label route"])


if __name__ == "__main__":
    unittest.main()

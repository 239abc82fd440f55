#!/usr/bin/env python3
# make.py: writes sluice.json, the Grafana dashboard, from the list of panels below. The file is what is imported; a test
# (tests/deploy) runs this script with --check, which fails where the two differ, and compares its metrics with docs/metrics.md.
import json
import os
import sys

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sluice.json")
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Added to each selector: what the variables at the top of the dashboard choose.
CHOSEN = 'job="$job", instance=~"$instance"'

# The states of an endpoint by number, as docs/health.md has them, with a colour.
STATES = [("up", "green"), ("suspect", "yellow"), ("ejected", "red"), ("probing", "orange"), ("warming", "light-blue"),
          ("draining", "purple"), ("not serving", "dark-red")]


def per_second(metric, by, where="", window="$__rate_interval"):
    return f"sum by ({by}) (rate({series(metric, where)}[{window}]))" if by else f"sum(rate({series(metric, where)}[{window}]))"


def series(metric, where=""):
    return f"{metric}{{{CHOSEN}{', ' + where if where else ''}}}"


def quantile(share, metric, by="", where=""):
    labels = f"{by}, le" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({series(metric + '_bucket', where)}[$__rate_interval])))"


# A row of the dashboard: its title, and its panels: (title, what it says, unit, width of 24, [(expression, legend)], options).
ROWS = [
    ("Calls", [
        ("Calls by status", "Calls that ended, by the gRPC status that the client saw.", "reqps", 12,
         [(per_second("sluice_calls_total", "grpc_status"), "{{grpc_status}}")], {"stack": True}),
        ("Latency", "From a call's first header to its end, streams included.", "s", 12,
         [(quantile(0.5, "sluice_call_duration_seconds"), "p50"), (quantile(0.99, "sluice_call_duration_seconds"), "p99")], {}),
        ("Latency by route, p99", "", "s", 12,
         [(quantile(0.99, "sluice_call_duration_seconds", "route"), "{{route}}")], {}),
        ("Calls in flight", "Between their headers and their end.", "short", 12,
         [(series("sluice_calls_in_flight"), "{{instance}}")], {}),
    ]),
    ("Errors", [
        ("Calls that the proxy ended, by reason", "The token is in the call's sluice-reason trailer. `cancelled` is the client's own wish.",
         "reqps", 12, [(per_second("sluice_proxy_errors_total", "reason") + " > 0", "{{reason}}")], {"stack": True}),
        ("Failures of the proxy's own: may a backend have worked on them?", "`no` may be made again, whatever the call does.", "reqps", 6,
         [(per_second("sluice_failed_calls_total", "processed"), "{{processed}}")], {}),
        ("Retries, hedges, failovers", "Attempts after a call's first; the budget's refusals below them.", "reqps", 6,
         [(per_second("sluice_retries_total", "reason") + " > 0", "retry: {{reason}}"),
          (per_second("sluice_hedges_total", "result") + " > 0", "hedge: {{result}}"),
          (per_second("sluice_failovers_total", "cluster") + " > 0", "failover to {{cluster}}"),
          (per_second("sluice_retry_budget_refused_total", "kind") + " > 0", "no credit: {{kind}}")], {}),
    ]),
    ("Endpoints", [
        ("State", "The health of each endpoint over time.", "short", 12,
         [(series("sluice_endpoint_state", 'cluster=~"$cluster"'), "{{cluster}} {{endpoint}} ({{instance}})")], {"kind": "state"}),
        ("Failures for a cause at the endpoint", "Attempts; a retry may have hidden them from the client.", "reqps", 12,
         [(per_second("sluice_endpoint_failures_total", "cluster, endpoint", 'cluster=~"$cluster"') + " > 0", "{{cluster}} {{endpoint}}")], {}),
        ("Attempts", "By endpoint: the share of the calls that each takes.", "reqps", 8,
         [(per_second("sluice_endpoint_calls_total", "cluster, endpoint", 'cluster=~"$cluster"'), "{{cluster}} {{endpoint}}")], {}),
        ("Time to the response's headers, p99", "", "s", 8,
         [(quantile(0.99, "sluice_endpoint_latency_seconds", "cluster, endpoint", 'cluster=~"$cluster"'), "{{cluster}} {{endpoint}}")], {}),
        ("Ejections", "By what found the endpoint sick, and those that the bounds prevented.", "short", 8,
         [(f"sum by (cluster, detector) (increase({series('sluice_ejections_total')}[$__rate_interval])) > 0", "{{cluster}}: {{detector}}"),
          (f"sum by (cluster, reason) (increase({series('sluice_ejections_suppressed_total')}[$__rate_interval])) > 0",
           "{{cluster}}: not ejected, {{reason}}")], {}),
    ]),
    ("Limits", [
        ("Calls that wait for a limit", "", "short", 8, [(f"sum by (limit) ({series('sluice_limit_waiting')})", "{{limit}}")], {}),
        ("Calls that a limit refused", "", "reqps", 8,
         [(per_second("sluice_limit_refused_total", "limit, reason"), "{{limit}}: {{reason}}")], {}),
        ("Time in the queue of a limit, p99", "Of the calls that waited.", "s", 8,
         [(quantile(0.99, "sluice_limit_wait_seconds", "limit"), "{{limit}}")], {}),
    ]),
    ("Cache", [
        ("Cacheable calls", "Answered by a stored response, by another call's fetch, or not at once.", "reqps", 8,
         [(per_second("sluice_cache_hits_total", ""), "fresh"), (per_second("sluice_cache_stale_total", ""), "stale"),
          (per_second("sluice_cache_misses_total", "") + " - " + per_second("sluice_cache_coalesced_total", ""), "miss"),
          (per_second("sluice_cache_coalesced_total", ""), "coalesced")], {"stack": True}),
        ("Not stored, and evicted", "", "reqps", 8,
         [(per_second("sluice_cache_not_cached_total", "reason") + " > 0", "not stored: {{reason}}"),
          (per_second("sluice_cache_evictions_total", "cause") + " > 0", "evicted: {{cause}}")], {}),
        ("Memory of the cache", "", "bytes", 8,
         [(f"sum({series('sluice_cache_bytes')})", "used"), (f"sum({series('sluice_cache_capacity_bytes')})", "capacity")], {}),
    ]),
    ("Connections", [
        ("Open", "", "short", 8,
         [(f"sum({series('sluice_downstream_connections')})", "clients"),
          (f"sum by (cluster) ({series('sluice_upstream_connections')})", "to {{cluster}}")], {}),
        ("Opened and failed", "", "cps", 8,
         [(per_second("sluice_downstream_connections_total", ""), "accepted"),
          (per_second("sluice_downstream_connections_refused_total", ""), "refused"),
          (per_second("sluice_upstream_connects_total", "cluster"), "to {{cluster}}"),
          (per_second("sluice_upstream_connect_failures_total", "cluster") + " > 0", "failed to {{cluster}}")], {}),
        ("Ended by a bound", "Bounds in time, floods, requests that break HTTP/2.", "cps", 8,
         [(per_second("sluice_downstream_timeouts_total", "timeout") + " > 0", "client: {{timeout}}"),
          (per_second("sluice_upstream_timeouts_total", "cluster") + " > 0", "{{cluster}}: timeout"),
          (per_second("sluice_http2_abuse_total", "kind, side") + " > 0", "{{side}}: {{kind}}"),
          (per_second("sluice_http2_refused_requests_total", "reason") + " > 0", "refused: {{reason}}")], {}),
    ]),
    ("Process", [
        ("CPU of the workers", "1 is a core.", "percentunit", 8,
         [(per_second("sluice_worker_cpu_seconds_total", "instance, worker"), "{{instance}} {{worker}}")], {}),
        ("Memory", "Of buffers, calls, metadata and stored messages.", "bytes", 8,
         [(series("sluice_memory_held_bytes"), "held, {{instance}}"), (series("sluice_memory_limit_bytes"), "limit, {{instance}}")], {}),
        ("Access log and traces: what was not written or sent", "Lines and calls a second.", "short", 8,
         [(per_second("sluice_access_log_lines_total", "result", 'result=~"dropped|lost"'), "lines {{result}}"),
          (per_second("sluice_traced_calls_total", "result", 'result=~"dropped|lost"'), "traces {{result}}")], {}),
    ]),
    ("Lists and certificates", [
        ("Age of the lists' last answer", "Of clusters that follow a source. A file answers only when it changes.", "s", 8,
         [(series("sluice_discovery_age_seconds", 'cluster=~"$cluster"'), "{{cluster}} ({{instance}})")], {}),
        ("Lists put in force, held, refused", "", "short", 8,
         [(f"sum by (cluster, result) (increase({series('sluice_discovery_updates_total')}[$__rate_interval])) > 0",
           "{{cluster}}: {{result}}")], {}),
        ("Certificates end in", "Those in use, own and trusted.", "s", 8,
         [(series("sluice_tls_certificate_not_after_seconds") + " - time()", "{{used_by}} {{purpose}} {{file}}")], {"kind": "table"}),
    ]),
]


def panel_options(options):
    """(type, field config, options) of a panel."""
    kind = options.get("kind", "graph")
    if kind == "state":
        mapping = {str(value): {"text": name, "color": color, "index": value} for value, (name, color) in enumerate(STATES)}
        return "state-timeline", {"mappings": [{"type": "value", "options": mapping}], "custom": {"fillOpacity": 70, "lineWidth": 0}}, {
            "mergeValues": True, "showValue": "never", "rowHeight": 0.9, "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}}
    if kind == "table":
        steps = [{"color": "red", "value": None}, {"color": "yellow", "value": 2 * 86400}, {"color": "green", "value": 14 * 86400}]
        return "bargauge", {"thresholds": {"mode": "absolute", "steps": steps}, "min": 0, "max": 90 * 86400}, {
            "displayMode": "basic", "orientation": "horizontal", "showUnfilled": True,
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 30 if options.get("stack") else 0, "showPoints": "never",
              "spanNulls": False, "stacking": {"mode": "normal" if options.get("stack") else "none", "group": "A"}}
    return "timeseries", {"custom": custom, "min": 0}, {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "multi", "sort": "desc"}}


def panels():
    out, y = [], 0
    for row, row_panels in ROWS:
        out.append({"id": len(out) + 1, "type": "row", "title": row, "collapsed": False, "panels": [],
                    "gridPos": {"h": 1, "w": 24, "x": 0, "y": y}})
        y += 1
        x = 0
        for title, text, unit, width, queries, options in row_panels:
            if x + width > 24:
                x, y = 0, y + 8
            kind, defaults, shown = panel_options(options)
            out.append({
                "id": len(out) + 1, "type": kind, "title": title, "description": text, "datasource": SOURCE,
                "gridPos": {"h": 8, "w": width, "x": x, "y": y},
                "fieldConfig": {"defaults": {"unit": unit, **defaults}, "overrides": []}, "options": shown,
                "targets": [{"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": expr, "legendFormat": legend,
                             **({"instant": True} if kind == "bargauge" else {})} for at, (expr, legend) in enumerate(queries)],
            })
            x += width
        y += 8
    return out


def variable(name, label, query, several):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "query": {"query": query, "refId": name},
            "definition": query, "refresh": 2, "sort": 1, "multi": several, "includeAll": several, "hide": 0,
            **({"allValue": ".*", "current": {"selected": True, "text": ["All"], "value": ["$__all"]}} if several else {})}


def dashboard():
    return {
        "uid": "sluice", "title": "Sluice", "description": "What the proxy does and why; docs/metrics.md has each metric.",
        "tags": ["sluice", "grpc"], "schemaVersion": 36, "version": 1, "editable": True, "graphTooltip": 1, "timezone": "",
        "refresh": "30s", "time": {"from": "now-1h", "to": "now"}, "annotations": {"list": []}, "links": [],
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0},
            variable("job", "Job", "label_values(sluice_calls_in_flight, job)", False),
            variable("instance", "Process", 'label_values(sluice_calls_in_flight{job="$job"}, instance)', True),
            variable("cluster", "Cluster", 'label_values(sluice_cluster_version{job="$job", instance=~"$instance"}, cluster)', True),
        ]},
        "panels": panels(),
    }


def main():
    text = json.dumps(dashboard(), indent=1) + "\n"
    if sys.argv[1:] == ["--check"]:
        with open(FILE, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit("sluice.json is not what make.py makes: run deploy/grafana/make.py")
        return
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()

"""Reads metrics in Prometheus' text format from standard input with Prometheus' own parser, and writes each sample as
a line of JSON. Exits with a traceback if the parser refuses the text."""
import json
import sys

from prometheus_client.parser import text_string_to_metric_families

for family in text_string_to_metric_families(sys.stdin.read()):
    for sample in family.samples:
        line = {"name": sample.name, "kind": family.type, "labels": sample.labels, "value": str(float(sample.value))}
        print(json.dumps(line))

"""A collector for OTLP over HTTP in JSON, made of OpenTelemetry's own definitions: collector.py [CERTIFICATE KEY].

With COLLECTOR_REJECTS=N in the environment it says that it rejected N spans of each request.

Prints {"port": ...} first, then one line of JSON for each request that the definitions accept: its path, its header
field Authorization, and its spans or metrics. A request that they do not accept gets 400 and is printed with "error".
"""

import base64
import http.server
import json
import os
import ssl
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REJECTED = os.environ.get("COLLECTOR_REJECTS")


def ids_in_base64(span):
    """OTLP has ids in hex, where the JSON mapping of Protocol Buffers has base64."""
    for name, length in [("traceId", 32), ("spanId", 16), ("parentSpanId", 16)]:
        if name in span:
            if len(span[name]) != length:
                raise ValueError(f"{name} {span[name]!r} has not {length} digits")
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(owner):
    return {attribute.key: value(attribute.value) for attribute in owner.attributes}


def spans(body):
    for resource in body["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                ids_in_base64(span)
    request = json_format.ParseDict(body, ExportTraceServiceRequest())
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "resource": attributes(resource.resource),
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": attributes(span),
                    "status": span.status.code,
                }


def metrics(body):
    request = json_format.ParseDict(body, ExportMetricsServiceRequest())
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                points = getattr(metric, kind).data_points
                for point in points if kind == "histogram" else []:
                    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, metric.name
                    assert sum(point.bucket_counts) == point.count, metric.name
                yield {"name": metric.name, "kind": kind, "points": len(points), "unit": metric.unit}


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        line = {"path": self.path, "authorization": self.headers["Authorization"]}
        try:
            if self.headers["Content-Type"] != "application/json":
                raise ValueError("another type")
            read = {"/v1/traces": spans, "/v1/metrics": metrics}[self.path.removeprefix("/base")]
            line["items"] = list(read(json.loads(body)))
        except Exception as error:
            line["error"] = repr(error)
        print(json.dumps(line), flush=True)
        answer = json.dumps(
            {"partialSuccess": {"rejectedSpans": REJECTED, "errorMessage": "too old"}} if REJECTED else {}
        ).encode()
        self.send_response(400 if "error" in line else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
if len(sys.argv) == 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(json.dumps({"port": server.server_address[1]}), flush=True)
server.serve_forever()

"""A receiver of traces over OTLP/HTTP, which decodes them with the protocol's own classes."""

from __future__ import annotations

import base64
import gzip
import json
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, cast

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class OtelReceiver(HTTPServer):
    """Gives the statuses of a list, then takes everything, always with one span that it rejected."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.answers: list[int] = []
        self.requests: list[ExportTraceServiceRequest] = []
        """Those that it has taken."""
        self.heads: list[str] = []
        """Path, type, encoding and the key of each request."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def ids(self) -> list[bytes]:
        return [span.span_id for span in self.spans()]

    def wait_until(self, holds: Callable[[], bool], seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, [span.name for span in self.spans()]
            time.sleep(0.01)


@contextmanager
def receiving(port: int = 0) -> Generator[OtelReceiver]:
    """A receiver that answers meanwhile."""
    with OtelReceiver(port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def attributes(span: Span) -> dict[str, Any]:
    """Those that are a single value."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value") or "") for each in span.attributes}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        receiver = cast(OtelReceiver, self.server)
        kind, encoding = self.headers["Content-Type"], self.headers["Content-Encoding"]
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        receiver.heads.append(f"{self.path} {kind} {encoding} {self.headers['X-Key']}")
        status = receiver.answers.pop(0) if receiver.answers else 200
        answer = b""
        if status == 200:
            receiver.requests.append(_decoded(body, kind))
            success = ExportTracePartialSuccess(rejected_spans=1)
            answer = ExportTraceServiceResponse(partial_success=success).SerializeToString()
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "7")
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _decoded(body: bytes, kind: str) -> ExportTraceServiceRequest:
    if kind == "application/x-protobuf":
        return ExportTraceServiceRequest.FromString(body)
    document = json.loads(body)
    for resource in document["resourceSpans"]:
        for span in resource["scopeSpans"][0]["spans"]:
            for name in {"traceId", "spanId", "parentSpanId"} & set(span):
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return ParseDict(document, ExportTraceServiceRequest())

"""Metrics for Prometheus: counts and durations, never texts, addresses or keys."""

from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from translator.serve.models import Result

__all__ = ["CONTENT_TYPE_LATEST", "OTHER", "Metrics"]

OTHER = "other"  # the label of all paths that the server does not know
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self.registry, "namespace": "translator"}
        self.requests = Counter("requests", "Requests answered.", ["route", "status"], **own)
        self.latency = Histogram(
            "request_seconds", "From a request to the end of its answer.", ["route"], buckets=_SECONDS, **own
        )
        self.errors = Counter("errors", "Requests that failed because of an internal error.", ["kind"], **own)
        self.cancelled = Counter("cancelled", "Requests whose client disconnected before the answer.", **own)
        self.queue_length = Gauge("queue_length", "Requests waiting to be translated.", **own)
        self.batch_lines = Histogram("batch_lines", "Lines translated together.", buckets=_SIZES, **own)
        self.batch_requests = Histogram(
            "batch_requests", "Requests whose lines were translated together.", buckets=_SIZES, **own
        )
        self.batch_seconds = Histogram("batch_seconds", "Time to translate a batch.", buckets=_SECONDS, **own)
        self.pieces = Counter("pieces", "Pieces read and written.", ["side"], **own)
        self.characters = Counter("characters", "Characters of accepted texts.", **own)
        self.num_characters = 0

    def observe_batch(self, results: Sequence[Result], *, num_requests: int, seconds: float) -> None:
        self.batch_lines.observe(len(results))
        self.batch_requests.observe(num_requests)
        self.batch_seconds.observe(seconds)
        self.pieces.labels("source").inc(sum(result.num_source_pieces for result in results))
        self.pieces.labels("target").inc(sum(result.num_pieces for result in results))

    def accept(self, num_characters: int) -> None:
        self.num_characters += num_characters
        self.characters.inc(num_characters)

    def answered(self, route: str, status: int, seconds: float) -> None:
        self.requests.labels(route, str(status)).inc()
        self.latency.labels(route).observe(seconds)

    def page(self) -> bytes:
        return generate_latest(self.registry)

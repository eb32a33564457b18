"""Counts and durations for Prometheus. Labels are routes and status codes: few, and never what a client sent."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of one service, in a registry of its own: several services in a process do not add up."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series for each of these, of its first count
        self.registry = CollectorRegistry()
        self._requests = Counter("dragoman_requests", "Requests answered", ("route", "status"), registry=self.registry)
        self._seconds = Histogram(
            "dragoman_request_seconds",
            "Seconds from a request's headers to the end of its answer",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._batches = Histogram(
            "dragoman_batch_sentences",
            "Sentences translated together in a batch",
            buckets=_SENTENCES,
            registry=self.registry,
        )
        self._sentences = Counter("dragoman_sentences", "Sentences given to the model", registry=self.registry)
        self.cache_hits = Counter("dragoman_cache_hits", "Sentences answered from the cache", registry=self.registry)
        self.refused = Counter(
            "dragoman_refused", "Requests refused for their host, origin, rate or body", registry=self.registry
        )
        self.left = Counter("dragoman_left", "Clients that left before their request was whole", registry=self.registry)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_batch(self, sentences: int) -> None:
        self._batches.observe(sentences)
        self._sentences.inc(sentences)

    def add_gauge(self, name: str, description: str, value: Callable[[], int]) -> None:
        """Adds a gauge whose value is asked for whenever the metrics are read."""
        Gauge(f"dragoman_{name}", description, registry=self.registry).set_function(value)

    def value(self, name: str, **labels: str) -> float:
        """The value of one series now; 0 where nothing was counted."""
        return self.registry.get_sample_value(f"dragoman_{name}", labels) or 0.0

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

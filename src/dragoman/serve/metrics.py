"""Counts and times in Prometheus' text format. Labels are routes and status codes: few, never what a client sent."""

from collections import defaultdict
from collections.abc import Callable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.total += value
        place = next((index for index, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[place] += 1

    def lines(self, name: str, labels: str = "") -> list[str]:
        found, seen = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            seen += count
            found.append(f'{name}_bucket{{{labels}{"," if labels else ""}le="{bound}"}} {seen}')
        within = f"{{{labels}}}" if labels else ""
        return [*found, f"{name}_sum{within} {self.total:.6f}", f"{name}_count{within} {seen}"]


class Metrics:
    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = defaultdict(int)
        self.seconds: dict[str, Histogram] = defaultdict(lambda: Histogram(_SECONDS))
        self.batches = Histogram(_SENTENCES)
        self.counters: dict[str, int] = {"sentences": 0, "cache_hits": 0, "refused": 0, "left": 0}
        self.gauges: dict[str, Callable[[], int]] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.seconds[route].observe(seconds)

    def batch(self, sentences: int) -> None:
        self.batches.observe(sentences)
        self.counters["sentences"] += sentences

    def text(self) -> str:
        lines = ["# TYPE dragoman_requests_total counter"]
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f'dragoman_requests_total{{route="{route}",status="{status}"}} {count}')
        lines.append("# TYPE dragoman_request_seconds histogram")
        for route, histogram in sorted(self.seconds.items()):
            lines += histogram.lines("dragoman_request_seconds", f'route="{route}"')
        lines += ["# TYPE dragoman_batch_sentences histogram", *self.batches.lines("dragoman_batch_sentences")]
        for name, count in self.counters.items():
            lines += [f"# TYPE dragoman_{name}_total counter", f"dragoman_{name}_total {count}"]
        for name, value in self.gauges.items():
            lines += [f"# TYPE dragoman_{name} gauge", f"dragoman_{name} {value()}"]
        return "\n".join(lines) + "\n"

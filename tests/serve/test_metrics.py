"""Metrics: their names, types and labels, which dashboards are built on, and what is counted."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dragoman.serve.metrics import Metrics
from support.serving import Running, running, service_of

GOOD = {"q": "a dog", "source": "en", "target": "eo"}
FAMILIES = {
    "dragoman_requests": ("counter", {"route", "status"}),
    "dragoman_request_seconds": ("histogram", {"route", "le"}),
    "dragoman_batch_sentences": ("histogram", {"le"}),
    "dragoman_sentences": ("counter", set()),
    "dragoman_cache_hits": ("counter", set()),
    "dragoman_refused": ("counter", set()),
    "dragoman_left": ("counter", set()),
    "dragoman_waiting_sentences": ("gauge", set()),
    "dragoman_cached_characters": ("gauge", set()),
}


def test_names_types_and_labels_stay(served: Running) -> None:
    served.post("/translate", GOOD)
    answer = served.ask("GET", "/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        labels = {label for sample in family.samples for label in sample.labels}
        found[family.name] = (family.type, labels)
    assert found == FAMILIES


def test_what_is_counted() -> None:
    metrics = Metrics()
    other = Metrics()
    metrics.count_request("/translate", 200, 0.02)
    metrics.count_request("/translate", 200, 20.0)
    metrics.count_request("/translate", 503, 0.001)
    metrics.count_batch(3)
    metrics.count_batch(300)
    waiting = 7
    metrics.add_gauge("waiting_sentences", "Sentences that wait", lambda: waiting)
    lines = metrics.exposition().decode().splitlines()
    for line in (
        'dragoman_requests_total{route="/translate",status="200"} 2.0',
        'dragoman_requests_total{route="/translate",status="503"} 1.0',
        'dragoman_request_seconds_bucket{le="0.005",route="/translate"} 1.0',
        'dragoman_request_seconds_bucket{le="0.025",route="/translate"} 2.0',
        'dragoman_request_seconds_bucket{le="10.0",route="/translate"} 2.0',
        'dragoman_request_seconds_bucket{le="+Inf",route="/translate"} 3.0',
        'dragoman_request_seconds_count{route="/translate"} 3.0',
        'dragoman_batch_sentences_bucket{le="2.0"} 0.0',
        'dragoman_batch_sentences_bucket{le="4.0"} 1.0',
        'dragoman_batch_sentences_bucket{le="+Inf"} 2.0',
        "dragoman_batch_sentences_sum 303.0",
        "dragoman_sentences_total 303.0",
        "dragoman_waiting_sentences 7.0",
    ):
        assert line in lines
    assert metrics.value("request_seconds_sum", route="/translate") == pytest.approx(20.021)
    waiting = 8
    assert metrics.value("waiting_sentences") == 8
    assert other.value("sentences_total") == 0  # a service of its own


def test_refusals_are_counted(served_run: Path) -> None:
    service = service_of(served_run, rate_limit=1)
    with running(service) as server:
        assert server.post("/translate", GOOD).status == 200
        assert service.metrics.value("refused_total") == 0
        assert server.post("/translate", GOOD).status == 429
        assert server.ask("GET", "/health", headers={"Host": "evil.example"}).status == 421
    assert service.metrics.value("refused_total") == 2
    assert service.metrics.value("requests_total", route="other", status="421") == 1

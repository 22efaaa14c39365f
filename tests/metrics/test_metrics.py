# SPDX-License-Identifier: Apache-2.0
"""Metrics of pipelines: their text, the server, OpenTelemetry, and the table of `penstock top`."""

import gc
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from penstock import fn, metrics, pipeline_def
from penstock.cli import main
from penstock.cli.top import Reading, format_table


@pipeline_def(batch_size=4, num_threads=2)
def flipped():
    return fn.flip(fn.external_source(source=lambda: [np.zeros((8, 8, 3), "u1")] * 4, layout="HWC"))


def values(name, text=None):
    """The values {labels: value} of one metric, parsed from the text by the format's rules."""
    found = re.findall(rf"^{name}\{{(.*)\}} (\S+)$", text or metrics.text(), re.M)
    return {labels: float(value) for labels, value in found}


def of(pipe_name, name, text=None):
    return [v for labels, v in values(name, text).items() if f'pipeline="{pipe_name}"' in labels]


@pytest.fixture
def name(request):
    """A unique pipeline name."""
    return "p" + re.sub(r"\W", "_", request.node.name)


def made(name, define=flipped, **kwargs):
    """A pipeline whose function has this name."""
    function = define.__wrapped__

    def renamed():
        return function()

    renamed.__name__ = name
    return pipeline_def(renamed, batch_size=4, num_threads=2, **kwargs)()


def test_counts(name):
    pipe = made(name, exec_pipelined=False)
    for _ in range(5):
        pipe.run()
    assert of(name, "penstock_samples_total") == [20]
    assert of(name, "penstock_batches_total") == [5]
    assert of(name, "penstock_threads") == [2]
    (busy,) = (v for k, v in values("penstock_operator_busy_seconds_total").items() if name in k and "flip" in k)
    assert 0 < busy < 5


def test_counters_survive_a_reset_of_the_statistics(name):
    pipe = made(name, exec_pipelined=False)
    pipe.run()
    before = values("penstock_operator_busy_seconds_total")
    pipe.reset_stats()
    after = values("penstock_operator_busy_seconds_total")
    assert all(after[k] >= v for k, v in before.items() if name in k)
    pipe.run()
    assert of(name, "penstock_samples_total") == [8]
    assert pipe.stats()["samples"] == 4


def test_bad_samples(name):
    good = [np.ones((2, 2, 3), "u1")] * 3

    def source():
        return fn.decoders.image(fn.external_source(source=lambda: [np.zeros(9, "u1")] * 4))

    source.__name__ = name
    pipe = pipeline_def(source, batch_size=4, num_threads=2, on_error="skip", exec_pipelined=False)()
    pipe.run()
    assert good and of(name, "penstock_bad_samples_total") == [4]
    assert 'action="skip"' in next(k for k in values("penstock_bad_samples_total") if name in k)


def test_names(name):
    a, b = made(name), made(name)
    a.build(), b.build()
    assert len(of(name, "penstock_samples_total")) == len(of(f"{name}-2", "penstock_samples_total")) == 1
    a.close()
    assert not of(name, "penstock_samples_total")
    del b
    gc.collect()
    assert not of(f"{name}-2", "penstock_samples_total")


@pytest.mark.parametrize("variable", ["RANK", "SLURM_PROCID"])
def test_rank(monkeypatch, name, variable):
    monkeypatch.setenv(variable, "17")
    pipe = made(name)
    pipe.build()
    assert any(name in k and 'rank="17"' in k for k in values("penstock_samples_total"))


def test_each_metric_is_described():
    for name in {re.match(r"\w+", line)[0] for line in metrics.text().splitlines() if not line.startswith("#")}:
        assert re.search(rf"^# HELP {name} \S.*\.$", metrics.text(), re.M)
        kind = re.search(rf"^# TYPE {name} (\w+)$", metrics.text(), re.M)[1]
        assert kind == ("counter" if name.endswith("_total") else "gauge")


def test_labels_are_escaped(name):
    def define():
        return fn.flip(fn.external_source(source=lambda: [np.zeros((2, 2, 3), "u1")] * 4, layout="HWC"), name='a"b\\c')

    define.__name__ = name
    pipe = pipeline_def(define, batch_size=4, num_threads=1)()
    pipe.build()
    assert r"flip 'a\"b\\c'" in metrics.text()


def test_server(name):
    pipe = made(name)
    pipe.run()
    n = threading.active_count()
    with metrics.serve(port=0) as server:
        with urllib.request.urlopen(server.url) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            text = answer.read().decode()
        assert of(name, "penstock_samples_total", text)[0] >= 4
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.url.replace("/metrics", "/secrets"))
        assert server.address == "127.0.0.1"
        with pytest.raises(
            OSError, match=f"in use: port {server.port} of 127.0.0.1; each process .* needs its own port"
        ):
            metrics.serve(server.port)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url)
    server.close()
    deadline = time.monotonic() + 5
    while threading.active_count() > n and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= n


def test_a_client_that_asks_nothing_keeps_nobody_waiting():
    import socket

    with metrics.serve(port=0) as server, socket.create_connection(("127.0.0.1", server.port)):
        assert urllib.request.urlopen(server.url, timeout=5).status == 200


def test_a_forked_process_has_no_part_in_it():
    code = """
import os, sys, urllib.request
import penstock.metrics as metrics
server = metrics.serve(port=0)
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(w, repr(server).encode())
    sys.stdin.read()
    os._exit(0)
assert b"closed" in os.read(r, 200)
assert urllib.request.urlopen(server.url).status == 200
port = server.port
server.close()
metrics.serve(port).close()  # nobody holds it any more, though the child lives
print("good")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, input="")
    assert run.stdout == "good\n", run.stderr


def test_read_while_batches_are_made(name):
    pipe = made(name)
    last = 0
    for _ in range(200):
        pipe.run()
        (now,) = of(name, "penstock_samples_total")
        assert now >= last
        last = now


def test_opentelemetry(name):
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    pipe = made(name, exec_pipelined=False)
    pipe.run()
    metrics.observe(sdk.MeterProvider([reader]).get_meter("test"))
    (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
    found = {m.name: m for m in scope.metrics}
    (point,) = [p for p in found["penstock_samples"].data.data_points if p.attributes["pipeline"] == name]
    assert point.value == 4
    assert found["penstock_samples"].data.is_monotonic
    assert found["penstock_consumer_wait_seconds"].unit == "s"


# penstock top


def test_table():
    def reading(at, samples, waited, busy):
        p = {("pipeline", "train"), ("rank", "0")}
        return Reading(
            at,
            {
                ("penstock_samples_total", frozenset(p)): samples,
                ("penstock_threads", frozenset(p)): 4,
                ("penstock_consumer_wait_seconds_total", frozenset(p)): waited,
                ("penstock_operator_busy_seconds_total", frozenset(p | {("operator", "resize (1)")})): busy,
            },
        )

    text = format_table(reading(10, 100, 1.0, 5.0), reading(12, 2100, 1.5, 9.0))
    assert text.splitlines()[0] == "train (rank 0): 1,000 samples/s, the training waits 25% of the time"
    assert text.splitlines()[2].split() == ["resize", "(1)", "50.0%", "0.0%", "0.0%"]


def test_top_by_process_and_url(capsys, name):
    pipe = made(name)
    pipe.run()
    with metrics.serve(port=0) as server:
        for target in (str(os.getpid()), server.url):
            assert main(["top", target, "--times", "2", "--every", "0.05"]) == 0
            out = capsys.readouterr().out
            assert out.count(f"{name} (rank 0): ") == 2 and "flip (1)" in out


def test_top_of_what_serves_nothing(capsys):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert main(["top", str(other.pid), "--times", "1"]) == 1
        assert "let it call penstock.metrics.serve()" in capsys.readouterr().err
        other.communicate(b"\n")
    assert main(["top", "999999999"]) == 1
    assert "there is no process 999999999" in capsys.readouterr().err
    assert main(["top", "http://127.0.0.1:9/metrics"]) == 1
    assert "returns no metrics" in capsys.readouterr().err

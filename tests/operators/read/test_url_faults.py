# SPDX-License-Identifier: Apache-2.0
"""Failures of servers and connections: temporary ones are retried, others are immediate errors of the sample."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from object_server import serving, some_fail
from optional_packages import needs
from penstock import PipelineError, fn, pipeline_def
from penstock.core import request_limits, storage, store_errors

pytestmark = needs("obstore")


@pytest.fixture
def server():
    rng = np.random.default_rng(0)
    with serving({f"d/{i}": rng.bytes(3000 + 7 * i) for i in range(60)}) as s:
        yield s


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(request_limits, "DEFAULT", request_limits.RequestLimits(read_s=1, hedge_s=0))
    storage._connections.clear()


def build(server, paths, batch_size=6, on_error="raise", **arguments):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error, **arguments)
    def pipe():
        return fn.readers.file(files=[p if "://" in p else f"{server.url}/{p}" for p in paths])[0]

    return pipe()


def contents(pipe, n):
    return [bytes(x) for _ in range(n) for x in (lambda b: [b.at(i) for i in range(len(b))])(pipe.run()[0])]


EVERYTHING = ("stall", "cut", "500", "hangup", "garbled")


@pytest.mark.parametrize("kinds", [("503",), ("429", "500"), ("cut",), ("hangup",), ("garbled",), EVERYTHING])
def test_what_passes_is_tried_again(server, kinds):
    server.fault = some_fail(0.05 if kinds is EVERYTHING else 0.2, kinds)
    paths = list(server.objects)
    pipe = build(server, paths)
    assert contents(pipe, 20) == 2 * [server.objects[p] for p in paths], "each once and in order"
    counted = pipe.stats()["remote"]
    assert counted["retries"] > 0 and counted["failed"] == 0
    assert counted["requests"] >= 120 + counted["retries"]


@pytest.mark.parametrize("fault, error", [("403", "does not allow it: 403 Forbidden"), (None, "no such object: 404")])
def test_what_lasts_is_an_error_at_once(server, fault, error):
    server.fault = lambda path, number: fault if path == "d/bad" else None
    begin = time.monotonic()
    pipe = build(server, ["d/0", "d/bad"], 2)
    with pytest.raises(RuntimeError, match=error) as caught:
        pipe.run()
    assert time.monotonic() - begin < 60 and pipe.stats()["remote"]["retries"] == 0
    assert f"Sample 1 of iteration 0: {server.url}/d/bad" in str(caught.value)


def test_bad_samples_are_left_out(server):
    pipe = build(server, ["d/0", "d/none", "d/1"], 3, on_error="skip")
    assert contents(pipe, 1) == [server.objects["d/0"], server.objects["d/1"]]
    assert "d/none" in str(pipe.errors()[0])


def test_a_server_that_stays_busy(server):
    server.fault = lambda path, number: "503"
    with pytest.raises(RuntimeError, match=r"answers 503 Service Unavailable \(tried 3 times"):
        build(server, ["d/0"], 1, storage_options={"retry_config": {"max_retries": 2}}).run()


def test_waits_grow_and_differ(server):
    """Each wait is between half of 50, 100, 200 ... ms and all of it, so that clients do not retry simultaneously."""
    times = {}

    def busy(path, number):
        times.setdefault(path, []).append(time.monotonic())
        return "503" if number < 5 else None

    server.fault = busy
    paths = list(server.objects)  # each once: those of the next epoch are not asked for yet
    assert contents(build(server, paths, 6), 1) == [server.objects[p] for p in paths[:6]]
    waits = np.diff([times[p][:5] for p in paths[:6]])
    assert (waits >= 0.025 * 2 ** np.arange(4)).all()
    assert (np.ptp(waits, axis=0) > 0.005 * 2 ** np.arange(4)).all()


def test_no_secrets_in_errors(server):
    url = server.url.replace("http://", "http://user:password@") + "/d/none?X-Amz-Signature=signature"
    pipe = build(server, [url], 1)
    with pytest.raises(RuntimeError) as caught:
        pipe.run()
    text = str(caught.value) + repr(caught.value.__cause__) + repr(pipe.errors())
    assert "/d/none" in text
    assert "password" not in text.replace("with pytest", "") and "X-Amz" not in text and "signature" not in text


def test_an_object_that_changes(server):
    pipe = build(server, ["d/0", "d/1"], 2)
    pipe.run()
    server.objects["d/1"] = b"of another size"
    with pytest.raises(RuntimeError, match="has changed since it was found: it has 15 bytes now and had 3007"):
        for _ in range(5):
            pipe.run()
    assert contents(build(server, ["d/1"], 1), 1) == [b"of another size"], "a new pipeline begins anew"


@pytest.mark.parametrize("new", [b"of another size", b"!" * 3007])
def test_an_object_that_changes_after_it_was_listed(server, new):
    """In a bucket."""

    @pipeline_def(batch_size=60, num_threads=2, storage_options={"endpoint": server.url, "aws_skip_signature": "true"})
    def pipe():
        return fn.readers.file(file_root="s3://top", file_filters=["*"])[0]

    server.objects = {f"top/{path}": content for path, content in server.objects.items()}
    built = pipe()
    built.build()
    server.objects["top/d/1"] = new
    with pytest.raises(RuntimeError, match="has changed since it was found"):
        built.run()


def test_redirects_are_followed(server):
    server.redirects["d/moved"] = f"{server.url}/d/5"
    assert contents(build(server, ["d/moved"], 1), 1) == [server.objects["d/5"]]


def test_compressed_on_the_way(server):
    server.gzips = True
    assert contents(build(server, ["d/0", "d/1"], 2), 1) == [server.objects["d/0"], server.objects["d/1"]]


def arrays(at, n=2, **arguments):
    @pipeline_def(batch_size=n, num_threads=2, **arguments)
    def pipe():
        return fn.readers.numpy(files=[f"{at}/a/{i}.npy" for i in range(n)], roi_start=[1], roi_end=[3])

    return pipe()


def test_parts_of_what_is_stored_compressed(server, tmp_path):
    server.gzips = True
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.arange(900))
    server.put_folder(tmp_path, "a")
    with pytest.raises(
        RuntimeError, match=r"stored compressed \(Content-Encoding: gzip\), and parts of it can't be read"
    ):
        arrays(server.url).run()


@pytest.mark.parametrize("kind", ["http", "http by obstore", "s3"])
def test_a_server_without_ranges(server, tmp_path, kind):
    server.ranges = False
    s3 = {"endpoint": server.url, "aws_skip_signature": "true"}
    options = {"http": None, "http by obstore": {"headers": {"x": "1"}}, "s3": s3}[kind]
    at = "s3:/" if kind == "s3" else server.url
    pipe = build(server, [f"{at}/d/0"], 1, storage_options=options)
    assert contents(pipe, 1) == [server.objects["d/0"]], "whole objects need none"
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.arange(90000))
    server.put_folder(tmp_path, "a")
    with pytest.raises(RuntimeError, match="ignores ranges and sends whole objects only"):
        arrays(at, storage_options=options).run()


@pytest.mark.parametrize(
    "status, why", [("403 Forbidden: denied", store_errors.FOR_GOOD), ("503 Slow Down", store_errors.SERVER_BUSY)]
)
def test_no_credentials(status, why):
    """The error of obstore if no source has credentials, not even the machine's metadata service."""
    from obstore.exceptions import GenericError

    at = "http://169.254.169.254/latest/api/token"
    text = f"Generic S3 error: Error performing PUT {at} in 1ms - Server returned non-2xx status code: {status}"
    failed = store_errors.failure(GenericError(text))
    assert failed.why == why and "no credentials were found: neither in the environment" in failed.reason


def test_the_text_of_an_answer_says_nothing_of_its_kind(server):
    """The text of a response may contain words of other errors."""
    server.fault = lambda path, number: "404"
    server.answer_with = (
        "InvalidCertificate status code: 503 Slow Down HttpError { kind: Timeout } <Code>ExpiredToken</Code>"
    )
    s3 = {"endpoint": server.url, "aws_skip_signature": "true"}
    pipe = build(server, ["s3://d/0"], 1, storage_options=s3)
    with pytest.raises(RuntimeError, match=r"there is no such object: 404 Not Found \(Planted\)"):
        pipe.run()
    assert pipe.stats()["remote"]["retries"] == 0


def test_a_server_that_was_away(server, capfd, monkeypatch):
    """It is waited for, with one log line that does not contain the signature."""
    url, objects = server.url, server.objects
    pipe = build(server, ["d/0?signature=a-secret", "d/1?signature=a-secret"], 2)
    pipe.run()
    tried = []

    def fault(path, number):
        """Until a try after more than 3 s, which says so."""
        tried.append(time.monotonic())
        return None if any(t - tried[0] > 3.5 for t in tried[:-1]) else "hangup"

    server.fault = fault
    assert contents(pipe, 4) == 4 * [objects["d/0"], objects["d/1"]]
    said = [line for line in capfd.readouterr().err.splitlines() if "trying again" in line]
    assert len(said) == 1 and said[0].startswith(f"penstock: {url}/d/") and "secret" not in said[0]


def test_a_server_that_is_not_there_yet(server):
    """At first, its port is closed."""
    objects = dict(server.objects)
    with serving() as gone:
        url, port = gone.url, gone.server_address[1]
    pipe = build(server, [f"{url}/d/0"], 1)
    pipe.schedule_run()
    time.sleep(1)
    with serving(objects, port=port):
        assert [bytes(x) for x in (pipe.share_outputs()[0].at(0),)] == [objects["d/0"]]
    assert pipe.stats()["remote"]["retries"] > 2


def run_script(text, *arguments, timeout=60, **options):
    command = [sys.executable, "-c", textwrap.dedent(text), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)


PROGRAM = """
import sys
from penstock import PipelineError, fn, pipeline_def
@pipeline_def(batch_size=2, num_threads=2)
def pipe():
    return fn.readers.file(files=[sys.argv[1] + f"/d/{i}" for i in range(4)])[0]
"""


INTERRUPTED = (
    PROGRAM
    + """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
pipe().run()
"""
)


def test_ctrl_c(server):
    server.fault = lambda path, number: "hangup"
    program = subprocess.Popen([sys.executable, "-c", INTERRUPTED, server.url], stderr=subprocess.PIPE, text=True)
    try:
        while not server.asked:
            time.sleep(0.05)
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        _, error = program.communicate(timeout=10)
    finally:
        program.kill()
    assert "KeyboardInterrupt" in error


def test_a_pipeline_that_waits_can_be_dropped(server):
    server.fault = lambda path, number: "hangup"
    pipe = build(server, ["d/0", "d/1"], 2)
    pipe.schedule_run()
    while not server.asked:
        time.sleep(0.01)
    begin = time.monotonic()
    del pipe
    assert time.monotonic() - begin < 60  # it would try for 180


WORKERS = (
    PROGRAM
    + """
import multiprocessing
def work(results):
    try:
        results.put([len(pipe().run()[0].at(0)) for _ in range(2)])
    except BaseException as e:
        results.put(str(e))
if __name__ == "__main__":
    if sys.argv[3] == "used":
        pipe().run()
    context = multiprocessing.get_context(sys.argv[2])
    results = context.Queue()
    workers = [context.Process(target=work, args=(results,)) for _ in range(2)]
    for w in workers: w.start()
    print([results.get(timeout=40) for w in workers])
    for w in workers: w.join(10)
"""
)


@pytest.mark.parametrize("used", ["used", "unused"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers(server, method, used, tmp_path):
    (tmp_path / "program.py").write_text(WORKERS)
    command = [sys.executable, str(tmp_path / "program.py"), server.url, method, used]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run(command, capture_output=True, text=True, timeout=90, env=paths)
    assert result.returncode == 0, result.stderr
    if method == "fork" and used == "used":
        assert result.stdout.count("does not survive a fork; start workers with") == 2
    else:
        assert result.stdout.strip() == "[[3000, 3000], [3000, 3000]]"


def test_without_the_extra(server):
    result = run_script(
        "import sys; sys.modules['obstore'] = None\n" + PROGRAM + "pipe().run()", server.url, env={**os.environ}
    )
    assert "pip install 'penstock[remote]'" in result.stderr


@pytest.mark.parametrize(
    "reader",
    [
        "fn.readers.file(file_root='s3://bucket/images')[0]",
        "fn.readers.file(files=['s3://bucket/a.jpg'])[0]",
        "fn.readers.numpy(files=['s3://bucket/a.npy'])",
        "fn.readers.webdataset(paths=['s3://bucket/a.tar'], ext=['jpg'])",
    ],
)
def test_a_path_of_s3_without_the_extra(reader, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return eval(reader)

    with pytest.raises(
        (ImportError, PipelineError), match=r"read by obstore, .* pip install 'penstock\[remote\]'"
    ) as e:
        pipe().run()
    assert "internal error" not in str(e.value)


def test_options_are_written_nowhere(server):
    pipe = build(server, ["d/0"], 1, storage_options={"headers": {"x-token": "a-secret"}}, enable_checkpointing=True)
    pipe.run()
    assert any(h.get("x-token") == "a-secret" for h in server.seen)
    assert "a-secret" not in f"{pipe.serialize()!r}{pipe.checkpoint()!r}{pipe!r}{pipe.explain()}"

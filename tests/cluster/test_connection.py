# SPDX-License-Identifier: Apache-2.0
"""Connections between trainer and workers: authentication, addresses, and transfer of batches."""

import mmap
import os
import pickle
import socket
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from pipelines import SIZE, pictures, values, write_pictures

from penstock.cluster import wire
from penstock.cluster.batch_maker import BatchMaker
from penstock.cluster.connection import Connection, Streamed
from penstock.cluster.messages import Order
from penstock.cluster.packing import OfReader
from penstock.cluster.ray_link import connected
from penstock.cluster.ray_worker import RayWorker, accepted
from penstock.cluster.worker import OverTheWire, serve

TOKEN = b"t" * 32


class Bomb:
    """Does something when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, (Bomb.path,)


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as s:
        yield s


def accepting(server, found):
    thread = threading.Thread(target=lambda: found.append(accepted(server, TOKEN)))
    thread.start()
    return thread


def test_who_does_not_have_the_token_is_turned_away(server, tmp_path):
    """Data of unauthenticated clients is not unpickled; authenticated ones are served afterwards."""
    Bomb.path = str(tmp_path / "unpickled")
    found = []
    thread = accepting(server, found)
    address = (int(server.family), server.getsockname())
    with socket.create_connection(address[1]) as stranger:
        data = pickle.dumps(Bomb())
        stranger.sendall(len(data).to_bytes(8, "little") + data + bytes(200))
        stranger.settimeout(60)
        received = bytearray()
        try:
            while part := stranger.recv(4096):
                received += part
        except ConnectionResetError:
            pass
        assert TOKEN not in received
    assert connected(address, b"x" * 32) is None
    socket.create_connection(address[1]).close()
    mine = connected(address, TOKEN)
    thread.join(60)
    assert mine is not None and len(found) == 1
    assert not os.path.exists(Bomb.path)
    mine.close()
    found[0].close()


def test_memory_that_both_map_is_pinned_for_a_gpu():
    """Once, by what the trainer passes."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0penstock-test-" + os.urandom(8).hex())
        server.listen()
        found, pinned = [], []
        thread = accepting(server, found)
        mine = connected((int(server.family), server.getsockname()), TOKEN, lambda *region: pinned.append(region))
        thread.join(60)
    for number in range(2):
        mine._incoming.place(number)
        mine._incoming._leases.clear()
    assert len(pinned) == 1 and pinned[0][0] % mmap.PAGESIZE == pinned[0][1] % mmap.PAGESIZE == 0
    mine.close()
    found[0].close()


def test_a_worker_that_does_not_have_the_token_is_not_believed(server):
    def pretend():
        sock, _ = server.accept()
        with sock:
            sock.sendall(sock.recv(32))  # echoes the challenge
            sock.sendall(sock.recv(32))
            sock.recv(1)

    thread = threading.Thread(target=pretend)
    thread.start()
    assert connected((int(server.family), server.getsockname()), TOKEN) is None
    thread.join(60)


def test_proofs_are_of_this_connection(server):
    """A proof can't be replayed on another connection."""
    a, b = socket.socketpair()
    heard = []
    thread = threading.Thread(target=lambda: wire.prove(b, TOKEN, b"worker", b"trainer", 20))
    thread.start()
    send = a.sendall
    recorder = SimpleNamespace(
        settimeout=a.settimeout, sendall=lambda d: (heard.append(bytes(d)), send(d)), recv_into=a.recv_into
    )
    wire.prove(recorder, TOKEN, b"trainer", b"worker", 20)
    thread.join(60)
    c, d = socket.socketpair()
    c.sendall(b"".join(heard))
    with pytest.raises(PermissionError):
        wire.prove(d, TOKEN, b"worker", b"trainer", 20)
    for s in (a, b, c, d):
        s.close()


@pytest.mark.parametrize(
    ("ip", "listens"), [("127.0.0.1", True), ("8.8.8.8", False), ("2001:4860:4860::8888", False), ("192.0.2.1", False)]
)
def test_no_public_address(monkeypatch, ip, listens):
    ray = SimpleNamespace(
        get_runtime_context=lambda: SimpleNamespace(get_node_id=lambda: "here"),
        util=SimpleNamespace(get_node_ip_address=lambda: ip),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    worker = RayWorker()
    address = worker.listen("elsewhere")
    assert (address is not None) == listens
    if listens:
        assert address[1][0] == ip
        worker._server.close()
    family, name = worker.listen("here")
    assert family == socket.AF_UNIX and name.startswith(b"\0")
    worker._server.close()


def test_batches_over_the_wire(tmp_path):
    """Several outputs, dense and ragged, while further batches are requested."""
    files = write_pictures(tmp_path)
    plain, pipe = pictures(files), pictures(files)
    pipe.build()
    sources = pipe._plan.sources
    ours, theirs = socket.socketpair()
    maker = BatchMaker(pipe._plan, "raise", 1, 0)

    def run():
        with pytest.raises((EOFError, OSError)):
            serve(theirs, maker, OverTheWire())

    thread = threading.Thread(target=run)
    thread.start()
    connection = Connection(ours, Streamed())
    n = 12
    for i in range(n):
        picks = {node.number: pipe._plan.source_op(node).take(SIZE, i) for node in sources}
        columns = next(iter(picks.values())).columns
        connection.send(Order(i, SIZE, columns["epoch"], columns["position"], i, picks))
    found = {}
    for _ in range(n):
        answer, batches = connection.receive()
        assert all(isinstance(names, OfReader) for names in answer.names)  # a few bytes per sample
        found[answer.number] = [[np.array(b.sample(i)) for i in range(SIZE)] for b in batches]
    for i in range(n):
        for a, b in zip(values(plain.run()), found[i]):
            for x, y in zip(a, b):
                np.testing.assert_array_equal(x, y)
    connection.shutdown()
    thread.join(60)
    assert not thread.is_alive()
    connection.close()

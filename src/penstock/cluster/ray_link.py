# SPDX-License-Identifier: Apache-2.0
"""Workers that are Ray actors. Ray places them and reports when they are gone."""

from __future__ import annotations

import queue
import secrets
import socket
import threading
from importlib import import_module
from typing import Any

from ..external.arena import Pin
from . import wire
from .connection import Connection, Shared, Streamed
from .local_link import check_described
from .messages import Answer, Order
from .packing import unpack
from .ray_worker import Address, RayWorker
from .worker_link import WorkerLost, WorkerRefused
from .worker_pool import LEAST_DEPTH

_PLACE_SECONDS = 60.0  # for Ray to find a place, or to add a machine
_CONNECT_SECONDS = 5.0
_PROOF_SECONDS = 30.0  # longer than the worker waits for an unauthorized client, which may have connected first
_TELLS_SECONDS = 5.0  # for Ray to notice the end of a worker that has hung up
_MAX_TEXT = 500
_connected = ""  # the address this module has connected to


def _ray() -> Any:
    """The ray package, imported only when used, as few users have it."""
    return import_module("ray")


def _cluster() -> Any:
    """Ray, if the program is still connected to a cluster: otherwise many of Ray's functions would start one. Raises
    WorkerLost if it is not."""
    ray = _ray()
    if not ray.is_initialized():
        raise WorkerLost("the program has left its cluster of Ray")
    return ray


def connect(workers: str) -> None:
    """Connects the program to the cluster `workers`, unless it is connected. Raises ConnectionError."""
    global _connected
    ray = _ray()
    if workers == "auto":
        if not ray.is_initialized():
            ray.init(address="auto", log_to_driver=False)
    elif not ray.is_initialized():
        ray.init(workers, log_to_driver=False)
        _connected = workers
    elif _connected != workers:
        raise ConnectionError('the program is connected to a cluster already; workers="auto" takes that one')


def places(num_threads: int) -> int:
    """Number of workers that the cluster has room for, at least 1."""
    alive = [n for n in _cluster().nodes() if n["Alive"]]
    return max(sum(int(n["Resources"].get("CPU", 0) // num_threads) for n in alive), 1)


class RayLink:
    """An actor and the connection to it. If they can't be connected, orders and batches use Ray's calls and objects."""

    def __init__(
        self,
        index: int,
        payload: bytes,
        expected: dict[str, Any],
        version: str,
        num_threads: int,
        depth: int,
        pin: Pin | None = None,
    ):
        self._pin = pin
        self.index, self._payload, self._expected, self._version = index, payload, expected, version
        self._num_threads, self._depth = num_threads, max(depth, LEAST_DEPTH)
        self.name, self.pid = f"worker {index}", 0
        self._actor: Any = None
        self._hung_up = False
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()  # futures; None after `hang_up`

    def open(self) -> None:
        if self._hung_up:
            raise WorkerLost("was not started")
        options = {"num_cpus": self._num_threads, "max_concurrency": self._depth + 2, "max_restarts": 0}
        try:
            self._actor = _cluster().remote(RayWorker).options(**options).remote()
            error, theirs, self.pid = self._call(self._actor.open.remote(self._version, self._payload))
        except _ray().exceptions.RayError as e:
            raise self._lost(e) from None
        self.name = f"worker {self.index} (pid {self.pid})"
        if error:
            raise WorkerRefused(f"{self.name} can't make batches of this pipeline: {error}")
        check_described(self.name, self._expected, theirs)
        self._connect()

    def _call(self, called: Any) -> Any:
        called.future().add_done_callback(self._done.put)
        try:
            return self._result(self._done.get(timeout=_PLACE_SECONDS))
        except queue.Empty:
            raise WorkerLost(
                f"({self.name}) has no place in the cluster: it needs a machine with {self._num_threads} free CPUs "
                "(num_threads)"
            ) from None

    def _connect(self) -> None:
        """Connects to the worker, if possible."""
        machine = _machine()
        if machine is None:
            return
        token = secrets.token_bytes(32)
        try:
            address = self._call(self._actor.listen.remote(machine))
            if address is None:
                return
            served = self._actor.serve.remote(token)
        except _ray().exceptions.RayError as e:
            raise self._lost(e) from None
        connection = connected(address, token, self._pin)
        if connection is None:
            return
        with self._lock:
            self._connection = connection
            if self._hung_up:
                connection.shutdown()
        served.future().add_done_callback(self._served)

    def _served(self, future: Any) -> None:
        """Called when the worker has finished, or Ray has noticed its end."""
        self._done.put(future)
        with self._lock:
            if self._connection is not None:
                self._connection.shutdown()

    def send(self, order: Order) -> None:
        if self._hung_up:
            raise WorkerLost("was told to end")
        try:
            if self._connection is not None:
                self._connection.send(order)
            else:
                self._actor.make.remote(order).future().add_done_callback(self._done.put)
        except OSError:
            raise WorkerLost("hung up") from None
        except _ray().exceptions.RayError as e:
            raise self._lost(e) from None

    def receive(self) -> tuple[Answer, Any]:
        try:
            if self._connection is None:
                return self._received(self._result(self._done.get()))
            try:
                return self._connection.receive()
            except (OSError, EOFError):
                self._result(self._done.get(timeout=_TELLS_SECONDS))  # raises Ray's reason
                raise WorkerLost(f"({self.name}) hung up") from None
        except queue.Empty:
            raise WorkerLost(f"({self.name}) hung up, and Ray does not say why") from None
        except _ray().exceptions.RayError as e:
            raise self._lost(e) from None

    @staticmethod
    def _received(result: Any) -> tuple[Answer, Any]:
        answer, parts = result
        if answer.outputs is None:
            return answer, None
        where = [(at, part.nbytes, part.ctypes.data) for at, part in parts]
        return answer, unpack(answer.outputs, answer.names, where, tuple(part for _, part in parts))

    def hang_up(self) -> None:
        with self._lock:
            self._hung_up = True
            if self._connection is not None:
                self._connection.shutdown()
        self._done.put(None)

    def end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._actor is not None:
            try:
                _cluster().kill(self._actor)
            except Exception:
                pass  # the cluster is gone, or the program has left it, and the actor has ended
            self._actor = None

    def _result(self, future: Any) -> Any:
        if future is None or self._hung_up:
            raise WorkerLost(f"({self.name}) was told to end")
        return future.result()

    def _lost(self, e: Exception) -> Exception:
        """The exception for a worker that did not answer: it is lost, or can't work at all."""
        text = " ".join(str(e).split())
        if "ModuleNotFoundError" in text or "ImportError" in text:
            return WorkerRefused(
                f"{self.name} has no penstock that fits: install the same version for both. {text[-_MAX_TEXT:]}"
            )
        return WorkerLost(f"({self.name}) is gone, as Ray says: {text[:_MAX_TEXT]}")


def _machine() -> str | None:
    """The Ray node that this program runs on; None if it is not on a node but connected to a cluster through a
    proxy."""
    ray = _cluster()
    return None if ray.util.client.ray.is_connected() else ray.get_runtime_context().get_node_id()


def connected(address: Address, token: bytes, pin: Pin | None = None) -> Connection | None:
    """Connects to the worker that listens there and has the token; None if it can't be reached."""
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    sock.settimeout(_CONNECT_SECONDS)
    try:
        sock.connect(address[1])
        wire.prove(sock, token, b"trainer", b"worker", _PROOF_SECONDS)
        if sock.family != socket.AF_UNIX:
            return Connection(sock, Streamed())
        memory = Shared(pin)
        socket.send_fds(sock, [b"m"], [memory.fd])
        return Connection(sock, memory)
    except (OSError, EOFError):
        sock.close()
        return None

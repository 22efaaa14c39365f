# SPDX-License-Identifier: Apache-2.0
"""`penstock top`: shows a table of a process's pipelines, updated every second, from the metrics that it serves."""

from __future__ import annotations

import glob
import os
import re
import sys
import time
import urllib.error
import urllib.request
from typing import NamedTuple

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_LISTENS = "0A"  # the state of a socket in /proc/PID/net/tcp
_SECONDS = 2.0  # timeout of a request


class NotServed(Exception):
    """There are no metrics to show."""


class Reading(NamedTuple):
    """The values of all metrics, by name and labels, and the time of reading."""

    at: float
    values: dict[tuple[str, frozenset[tuple[str, str]]], float]


def watch(target: str, every: float, times: int | None) -> None:
    """Shows the table until interrupted, or `times` times. `target` is a process id or a URL."""
    url = target if "://" in target else _url_of(target)
    before = read(url)
    shown = 0
    while times is None or shown < times:
        time.sleep(every)
        now = read(url)
        table = format_table(before, now)
        if shown and sys.stdout.isatty():
            print(f"\033[{table.count(chr(10)) + 1}A\033[J", end="")
        print(table, flush=True)
        before, shown = now, shown + 1


def read(url: str) -> Reading:
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            text = answer.read().decode()
    except (OSError, ValueError) as e:
        raise NotServed(f"{url} returns no metrics: {getattr(e, 'reason', None) or e}") from None
    values = {}
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        labels, _, value = rest.rpartition("} ")
        if name.startswith("penstock_") and value:
            values[name, frozenset(_LABEL.findall(labels))] = float(value)
    if not values:
        raise NotServed(f"{url} answers, but not with the metrics of penstock")
    return Reading(time.monotonic(), values)


def format_table(before: Reading, now: Reading) -> str:
    """The table for the time between two readings: speed of each pipeline, and each operator's share of the time."""
    seconds = max(now.at - before.at, 1e-9)

    def rate(name: str, **labels: str) -> float:
        key = name, frozenset(labels.items())
        return max(now.values.get(key, 0.0) - before.values.get(key, 0.0), 0.0) / seconds

    pipelines = [dict(labels) for name, labels in now.values if name == "penstock_samples_total"]
    lines = []
    for labels in pipelines:
        threads = now.values.get(("penstock_threads", frozenset(labels.items())), 1.0)
        lines.append(
            f"{labels['pipeline']} (rank {labels['rank']}): {rate('penstock_samples_total', **labels):,.0f} samples/s, "
            f"the training waits {min(rate('penstock_consumer_wait_seconds_total', **labels), 1):.0%} of the time"
        )
        lines.append(f"  {'operator':<40}{'threads':>9}{'Python':>9}{'loading':>9}")
        for name, of in now.values:
            each = dict(of)
            if name == "penstock_operator_busy_seconds_total" and labels.items() <= each.items():
                busy, python, load = (
                    rate(f"penstock_operator_{what}_seconds_total", **each) for what in ("busy", "python", "load")
                )
                lines.append(f"  {each['operator']:<40}{busy / threads:>9.1%}{python:>9.1%}{load:>9.1%}")
    return "\n".join(lines or ["no pipeline is built"])


def _url_of(pid: str) -> str:
    """The URL of a process's metrics: the first port it listens on that serves them."""
    if not pid.isdigit() or not os.path.isdir(f"/proc/{pid}"):
        raise NotServed(f"there is no process {pid}; penstock top takes its number, or the URL of its metrics")
    for address, port in _listening(pid):
        url = f"http://{address}:{port}/metrics"
        try:
            read(url)
        except NotServed:
            continue
        return url
    raise NotServed(f"process {pid} serves no metrics: let it call penstock.metrics.serve()")


def _listening(pid: str) -> list[tuple[str, int]]:
    """The addresses and ports that a process listens on, from /proc."""
    sockets = set()
    try:
        for link in glob.glob(f"/proc/{pid}/fd/*"):
            try:
                sockets.add(os.readlink(link))
            except FileNotFoundError:
                continue  # closed in the meantime
        found = []
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{table}") as f:
                for line in f.readlines()[1:]:
                    fields = line.split()
                    if fields[3] == _LISTENS and f"socket:[{fields[9]}]" in sockets:
                        host, _, port = fields[1].partition(":")
                        found.append((_reachable(host), int(port, 16)))
        return found
    except PermissionError:
        raise NotServed(f"process {pid} is another user's; give the URL of its metrics") from None
    except OSError as e:
        raise NotServed(f"the ports of process {pid} can't be found ({e}); give the URL of its metrics") from None


def _reachable(host: str) -> str:
    """Converts an address in /proc, with bytes in the machine's order, to one to connect to. "All addresses" becomes
    the loopback address."""
    if len(host) > 8 or not int(host, 16):
        return "localhost"
    return ".".join(str(byte) for byte in int(host, 16).to_bytes(4, sys.byteorder))

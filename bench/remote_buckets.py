# SPDX-License-Identifier: Apache-2.0
"""Objects of a bucket over loopback, with and without TLS: read by native code through signed URLs (S3) or with a token
(Google), by obstore's client in Python threads (where a proxy or own rules for TLS are given), and by obstore alone.
nginx is the server, on the same processors; it checks neither signatures nor tokens. Needs nginx, openssl, and what
`bench/remote.py` needs."""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import measure
import remote

PORT = 18873
ROOT = remote.ROOT
CERTIFICATE = ROOT / "certificate.pem"
SERVER = """server {{ listen 127.0.0.1:{port} ssl; root {root};
ssl_certificate {file}; ssl_certificate_key {file}; }} }}
"""
AT = {"http": f"http://127.0.0.1:{remote.NGINX_PORT}", "https": f"https://127.0.0.1:{PORT}"}
KEYS = {"access_key_id": "AKIA", "secret_access_key": "secret", "region": "us-east-1"}


def ours(scheme: str, more: dict[str, Any]):
    """Those of S3."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        os.environ["SSL_CERT_FILE"] = str(CERTIFICATE)
        yield from remote.objects("s3:/", storage_options={**KEYS, "endpoint": AT[scheme], **more})(o)

    return contender


def by_token(scheme: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        os.environ["SSL_CERT_FILE"] = str(CERTIFICATE)
        options = {"base_url": AT[scheme], "bearer_token": "a-token"}
        yield from remote.objects("gs:/", storage_options=options)(o)

    return contender


def alone(scheme: str, threads: int = 16):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        import obstore

        os.environ["SSL_CERT_FILE"] = str(CERTIFICATE)
        options = {"allow_http": scheme == "http"}
        store = obstore.store.S3Store("objects", **KEYS, endpoint=AT[scheme], client_options=options)
        with ThreadPoolExecutor(threads) as pool:
            for i in range(0, 1 << 60, 256):
                names = [f"{k % remote.OBJECTS}" for k in range(i, i + 256)]
                list(pool.map(lambda name: len(obstore.get(store, name).bytes()), names))
                yield 256

    return contender


# Client options leave the requests to obstore's client.
BY_CLIENT = {"client_options": {"user_agent": "bench"}}
CONTENDERS = {
    f"{scheme}: {who}": make
    for scheme in AT
    for who, make in (
        ("penstock, signed URLs", ours(scheme, {})),
        ("penstock, a token", by_token(scheme)),
        ("penstock, obstore's client", ours(scheme, BY_CLIENT)),
        ("obstore alone, 16 threads", alone(scheme)),
    )
}


def table(results: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| | objects/s | processor time per object, us | of the server, us |", "|---|---|---|---|"]
    for n, r in results.items():
        spent = (r.get(of, 0) / r["seconds"] / r["images_per_s"] * 1e6 for of in ("cpu_s", "server_s"))
        lines.append(f"| {n} | {r['images_per_s']:,.0f} | {' | '.join(f'{us:.0f}' if us else '' for us in spent)} |")
    lines += ["", "| | against | measured | wanted | holds |", "|---|---|---|---|---|"]
    for scheme in AT:
        for how in ("signed URLs", "a token"):
            for who, least in (("penstock, obstore's client", 1.0), ("obstore alone, 16 threads", 1.3)):
                a, b = f"{scheme}: penstock, {how}", f"{scheme}: {who}"
                if a in results and b in results:
                    got = measure.ratio(results[a], results[b])
                    lines.append(f"| {a} | {b} | {got:.2f} | {least} | {'yes' if got >= least else '**no**'} |")
    return lines


def main() -> None:
    parser = measure.arguments(__doc__ or "")
    o = parser.parse_args()
    if o.worker:
        return remote.work(CONTENDERS[o.worker], o)
    remote.prepare(o.data)
    new = "openssl req -x509 -newkey rsa:2048 -nodes -days 7 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    new += " -addext basicConstraints=critical,CA:FALSE"
    key, certificate = ROOT / "key.pem", ROOT / "only_certificate.pem"
    subprocess.run([*new.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    CERTIFICATE.write_text(certificate.read_text() + key.read_text())
    plain = remote.NGINX.format(root=ROOT, port=remote.NGINX_PORT).rstrip().removesuffix("}")
    config = plain + SERVER.format(root=ROOT, port=PORT, file=CERTIFICATE)
    Path(ROOT / "nginx.conf").write_text(config)
    server = subprocess.Popen([remote.nginx(), "-c", ROOT / "nginx.conf"])
    (ROOT / "servers").write_text(str(server.pid))
    try:
        time.sleep(1)
        results = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    finally:
        server.terminate()
        server.wait(10)
    lines = ["# Objects of a bucket", "", __doc__ or "", "", measure.machine(), measure.versions("obstore"), ""]
    measure.write(o.out, "remote_buckets.md", "\n".join(lines + table(results)) + "\n")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""There is one object per kernel, even if threads request it at the same time."""

import threading
import time

from penstock.core import kernels


def test_threads_get_the_same_kernel(monkeypatch):
    make = kernels.Kernel.__init__

    def slowly(self, path):
        time.sleep(0.05)  # so that all threads see that it does not exist yet
        make(self, path)

    monkeypatch.setattr(kernels.Kernel, "__init__", slowly)
    monkeypatch.setattr(kernels, "_kernels", {})
    found = []
    threads = [threading.Thread(target=lambda: found.append(kernels.kernel("color/linear"))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 8 and len({id(k) for k in found}) == 1
    assert kernels.kernel("color/linear") is found[0]

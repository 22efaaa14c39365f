# SPDX-License-Identifier: Apache-2.0
"""Counters of all pipelines of this process, for Prometheus and OpenTelemetry.

>>> import penstock.metrics
>>> with penstock.metrics.serve(port=0) as server:  # 0: any free port
...     server.url.startswith("http://127.0.0.1:")
True
>>> "penstock_samples_total" in penstock.metrics.text()
True

Each value has the labels `pipeline`, the name of the function that `pipeline_def` decorates, and `rank`, the rank of
the process from the environment variables RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK, otherwise 0.
"""

from .families import Family, Value, families
from .observing import observe
from .server import Server, serve
from .text import text

__all__ = ["Family", "Server", "Value", "families", "observe", "serve", "text"]

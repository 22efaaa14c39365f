# SPDX-License-Identifier: Apache-2.0
"""Metrics as text, in the format of Prometheus:
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format"""

from __future__ import annotations

from .families import families

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text() -> str:
    """Returns the answer of `serve`, for programs that have their own server, or write a file for a node exporter.

    >>> import penstock.metrics
    >>> print(penstock.metrics.text().splitlines()[0])
    # HELP penstock_samples_total Samples in the batches that were made.
    """
    lines = []
    for family in families():
        lines += [f"# HELP {family.name} {family.meaning}", f"# TYPE {family.name} {family.kind}"]
        for labels, value in family.values:
            listed = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
            lines.append(f"{family.name}{{{listed}}} {value}")
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

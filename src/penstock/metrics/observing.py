# SPDX-License-Identifier: Apache-2.0
"""The same metrics for OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .families import families

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation


def observe(meter: Meter | None = None) -> None:
    """Creates OpenTelemetry instruments for all metrics. They are read when its exporters request them.

    Requires `pip install penstock[otel]`. By default the `meter` of the global provider is used. Instruments have the
    names of the Prometheus metrics without the suffix `_total`, which exporters add; times are in seconds, sizes in
    bytes.

    >>> import penstock.metrics
    >>> penstock.metrics.observe()  # once, after the provider is set up
    """
    try:
        from opentelemetry import metrics
    except ImportError:
        raise ImportError("penstock.metrics.observe needs OpenTelemetry: pip install penstock[otel]") from None
    meter = meter or metrics.get_meter("penstock")

    def of(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def values(_: Any) -> list[Observation]:
            family = next(f for f in families() if f.name == name)
            return [metrics.Observation(value, dict(labels)) for labels, value in family.values]

        return values

    for name, kind, meaning, _ in families():
        make = meter.create_observable_counter if kind == "counter" else meter.create_observable_gauge
        unit = "s" if "_seconds" in name else "By" if "_bytes" in name else ""
        make(name.removesuffix("_total"), [of(name)], unit=unit, description=meaning)

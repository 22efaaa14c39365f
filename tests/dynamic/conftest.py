# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests of the imperative mode."""

import pytest

from penstock.experimental.dynamic import _invocation


@pytest.fixture
def runs(monkeypatch):
    """The names of the calls in each executed plan."""
    found = []
    together = _invocation.together

    def note(steps, devices):
        found.append([call.name.removeprefix("fn.") for call, _, _ in steps])
        return together(steps, devices)

    monkeypatch.setattr(_invocation, "together", note)
    return found

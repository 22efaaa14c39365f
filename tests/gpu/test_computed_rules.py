# SPDX-License-Identifier: Apache-2.0
"""Operators whose plans on the GPU a record computes give what the rules give."""

import pytest
from planned_batches import check

from replayed_cases import CASES

NEVER_AGAIN = list(range(14))


@pytest.mark.parametrize("name", CASES)
def test_same_as_by_rules(name, monkeypatch):
    def define(feed):
        def f(make, layout=None, side=False):
            layout = layout or ("HWC" if make(0)[0].ndim == 3 and not side else None)
            return feed(make, layout, device="cpu" if side else "gpu")

        return CASES[name](f)

    check(define, NEVER_AGAIN, monkeypatch, computes=True)

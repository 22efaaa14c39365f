# SPDX-License-Identifier: Apache-2.0
"""The list of DALI's missing operators is complete and correct, and used in errors."""

import json
import re
from pathlib import Path

import pytest

from penstock import fn, ops
from penstock.core.op import REGISTRY
from penstock.registry import absent

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "operators.json").read_text())


def snake(name):
    return re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])",
        "_",
        re.sub("BBox|TFRecord|MXNet", lambda w: w[0].capitalize(), name),
    ).lower()


def names():
    for schema, facts in REFERENCE.items():
        *modules, last = schema.split("__")
        if not last.startswith("_") and not any(m.startswith("_") for m in modules) and not facts.get("internal"):
            yield ".".join([*modules, snake(last)])


def test_every_operator_is_there_or_listed():
    there = {*REGISTRY, *(old for cls in REGISTRY.values() for old in map(snake, cls.deprecated))}
    there |= {f"experimental.{name}" for name, cls in REGISTRY.items() if cls.experimental}
    listed = {*absent.INSTEAD, *absent.FORMER}
    wanted = {name for name in names() if name not in there}
    assert wanted - listed == set()
    assert not listed & there


@pytest.mark.parametrize(
    ("module", "name", "told"),
    [
        (fn.readers, "papyrus", "fn.readers.papyrus is not implemented yet: use another"),
        (ops.readers, "Papyrus", "fn.readers.papyrus is not implemented yet: use another"),
        (ops, "PapyrusReader", "fn.readers.papyrus is not implemented yet: use another"),
        (fn, "papyrus_reader", "fn.readers.papyrus is not implemented yet: use another"),
        (
            fn.experimental,
            "scrolls",
            "fn.experimental.scrolls.one, fn.experimental.scrolls.two are not implemented yet",
        ),
        (fn.experimental, "tablets", "fn.experimental.tablets.clay is not implemented yet"),
    ],
)
def test_an_error_says_what_to_do_instead(module, name, told, monkeypatch):
    listed = ("readers.papyrus", "experimental.scrolls.one", "experimental.scrolls.two", "experimental.tablets.clay")
    monkeypatch.setattr(absent, "INSTEAD", dict.fromkeys(listed, "use another"))
    monkeypatch.setattr(absent, "FORMER", {"papyrus_reader": "readers.papyrus"})
    with pytest.raises(AttributeError, match=told):
        getattr(module, name)
    assert not hasattr(module, name)


def test_other_names_are_no_operators_of_dali():
    with pytest.raises(AttributeError, match="has no attribute 'resise'. Did you mean 'resize'"):
        _ = fn.resise

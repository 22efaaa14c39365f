# SPDX-License-Identifier: Apache-2.0
"""Documentation of the iterators' parameters, shared by all frameworks."""

from __future__ import annotations

import re
import textwrap
from typing import TypeVar

T = TypeVar("T", bound=type)

_TEXTS = {
    "pipelines": "A pipeline or a list of them, all with the same batch size.",
    "output_map": "A name for each output of the pipelines.",
    "size": "Number of samples in an epoch over all pipelines; -1 to iterate until the pipeline's source ends. "
    "Excludes `reader_name`.",
    "reader_name": "Name of the reader that provides the size of the epoch, the shards and the padding.",
    "auto_reset": 'How the next epoch begins. False or "no": with `reset()` or `iter()`. True or "yes": automatically. '
    '"raise": with `reset()` only.',
    "fill_last_batch": "Deprecated: True is `last_batch_policy` FILL, False is PARTIAL.",
    "dynamic_shape": "Has no effect: shapes may always change from batch to batch.",
    "last_batch_padded": "With `size`: whether the source pads the last batch, so that the next epoch begins with a "
    "new batch. Otherwise the last batch continues into the next epoch.",
    "last_batch_policy": "`LastBatchPolicy` or its name: FILL, DROP or PARTIAL.",
    "prepare_first_batch": "Whether to make the first batch in the constructor, which also reports mistakes early.",
    "padding_value": "Value with which padded outputs are filled.",
    "pad_to_multiple_of": "The padded length is a multiple of this, to reduce the number of different shapes.",
}


def with_parameters(cls: T) -> T:
    """Inserts the texts of parameters in a class's docstring at lines of the form {size reader_name ...}."""

    def texts(line: re.Match[str]) -> str:
        paragraphs = {name: textwrap.fill(_TEXTS[name], 106) for name in line[2].split()}
        table = "\n".join(f"{name}\n{textwrap.indent(text, '    ')}" for name, text in paragraphs.items())
        return textwrap.indent(table, line[1])

    if cls.__doc__:  # None with python -OO
        cls.__doc__ = re.sub(r"^( *)\{([a-z_ ]+)\}$", texts, cls.__doc__, flags=re.MULTILINE)
    return cls

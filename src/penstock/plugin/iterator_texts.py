# SPDX-License-Identifier: Apache-2.0
"""What the iterators' parameters mean: the same words for all frameworks."""

from __future__ import annotations

import re
import textwrap
from typing import TypeVar

T = TypeVar("T", bound=type)

_TEXTS = {
    "pipelines": "A pipeline or a list of them, all with the same batch size.",
    "output_map": "A name for each output of the pipelines.",
    "size": "Samples in an epoch over all pipelines; -1 to iterate until the pipeline's source ends. Excludes "
    "`reader_name`.",
    "reader_name": "Name of the reader that tells the size of the epoch, the shards and the padding.",
    "auto_reset": 'How the next epoch begins. False or "no": by `reset()` or `iter()`. True or "yes": by itself. '
    '"raise": by `reset()` only.',
    "fill_last_batch": "Deprecated: True is `last_batch_policy` FILL, False is PARTIAL.",
    "dynamic_shape": "Without effect: shapes may always change from batch to batch.",
    "last_batch_padded": "With `size`: whether the last batch is padded by the source, so that epochs start afresh, or "
    "goes on into the next epoch.",
    "last_batch_policy": "`LastBatchPolicy` or its name: FILL, DROP or PARTIAL.",
    "prepare_first_batch": "Whether the first batch is made at once, on construction, which also brings up mistakes "
    "early.",
    "padding_value": "What padded outputs are filled up with.",
    "pad_to_multiple_of": "The padded length is a multiple of this, so that there are fewer different shapes.",
}


def with_parameters(cls: T) -> T:
    """Puts the texts of parameters where the class's own text says {size reader_name ...}, on a line of its own."""

    def texts(line: re.Match[str]) -> str:
        paragraphs = {name: textwrap.fill(_TEXTS[name], 106) for name in line[2].split()}
        table = "\n".join(f"{name}\n{textwrap.indent(text, '    ')}" for name, text in paragraphs.items())
        return textwrap.indent(table, line[1])

    if cls.__doc__:  # not with python -OO
        cls.__doc__ = re.sub(r"^( *)\{([a-z_ ]+)\}$", texts, cls.__doc__, flags=re.MULTILINE)
    return cls

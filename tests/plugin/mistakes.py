# SPDX-License-Identifier: Apache-2.0
"""Arguments that the iterators of every framework refuse before the first batch, for a reader of 7 samples named
"reader" with two outputs and batches of 2; the error's type and text."""

MISTAKES = [
    (
        {"reader_nam": "reader"},
        TypeError,
        r"Iterator\(\) got an unexpected argument 'reader_nam'. Did you mean 'reader_name'",
    ),
    ({"reader_name": "raeder"}, ValueError, r"no reader of that name; it has \['reader'\].*Did you mean 'reader'"),
    ({"reader_name": "reader", "size": 5}, ValueError, "exclude each other"),
    ({"reader_name": "reader", "last_batch_padded": True}, ValueError, "exclude each other"),
    ({"reader_name": "reader", "last_batch_policy": "LAST"}, ValueError, "FILL, DROP, PARTIAL"),
    ({"reader_name": "reader", "auto_reset": "maybe"}, ValueError, "auto_reset takes .* got 'maybe'"),
    ({"size": 0}, ValueError, "size takes a positive number"),
    ({"size": -3}, ValueError, "size takes a positive number"),
    ({"output_map": ["a"]}, ValueError, r"1 name \('a'\), but the pipeline has 2 outputs"),
    ({"output_map": ["a", "b", "c"]}, ValueError, "3 names"),
    ({"output_map": ["a", "a"]}, ValueError, "'a' is there more than once"),
    ({"output_map": "ab"}, ValueError, "list of names"),
    ({"reader_name": "reader", "fill_last_batch": True, "last_batch_policy": "PARTIAL"}, ValueError, "contradicts"),
    ({"size": 1, "last_batch_policy": "DROP"}, ValueError, "no batch in an epoch"),
]

# SPDX-License-Identifier: Apache-2.0
"""The arguments of all readers that say in which order samples come: shards, shuffling, sampling, batches of similar
length."""

from __future__ import annotations

from typing import Any

from ...core.op import Arg, Seeded
from ...core.source import Source


def by_length(values: dict[str, Any]) -> bool:
    """Whether batches are of similar length."""
    return values["batch_by_length"] is not None and values["batch_by_length"] is not False


class OrderArguments(Source, Seeded, abstract=True):
    """The arguments, and the checks that need no data."""

    num_shards = Arg(int, 1, "Parts that the data set is divided into, such as processes of a distributed training.")
    shard_id = Arg(
        int,
        0,
        "The part to read, 0 to num_shards - 1. It begins with sample floor(shard_id * size / num_shards) and ends "
        "where the next begins.",
    )
    stick_to_shard = Arg(bool, False, "Reads the same shard in every epoch, instead of the next one.")
    pad_last_batch = Arg(
        bool,
        False,
        "Ends each epoch by repeating the shard's last sample, until all shards have given equally many and the "
        "batch is full. Otherwise batches run on into the next epoch.",
    )
    random_shuffle = Arg(
        bool,
        False,
        "Shuffles: the data set once, the same way in all shards, and each epoch of a shard anew, by a buffer of "
        "`initial_fill` samples.",
    )
    initial_fill = Arg(int, 1024, "Size of the buffer of `random_shuffle`; it holds numbers, not data.")
    shuffle_after_epoch = Arg(
        bool,
        False,
        "Shuffles the whole data set anew before each epoch, the same way in all shards. Implies `stick_to_shard`.",
    )
    shuffle_after_epoch_seed = Arg(int, None, "Seed of `shuffle_after_epoch`, the same in all shards.", bits=64)
    shuffle = Arg(
        str,
        None,
        '"global": an exact random permutation of the whole data set in each epoch, a function of (`seed`, epoch) '
        "without a buffer. Shards take turns along it, so what all shards together have seen after k batches does not "
        "depend on how many there are. Without a `seed` of its own the reader takes the pipeline's if there is one "
        "shard, otherwise 0, so that shards agree. "
        '"windows": for samples that lie together in blocks (the row groups of Parquet files; of other formats the '
        "files): blocks come in random order, and the samples of `shuffle_window` neighbouring ones are mixed. Each "
        "shard reads blocks of its own.",
    )
    shuffle_window = Arg(int, 16, 'Number of blocks of which `shuffle="windows"` mixes the samples.')
    weights = Arg(
        object,
        None,
        "Draws samples at random: by a weight for each, an array (samples,), or by those of labels, a dictionary, "
        "where the reader knows labels beforehand (`readers.file`). Draws are a function of (`seed`, epoch, draw), and "
        'shards take turns along them; without a `seed` as with `shuffle="global"`.',
    )
    num_samples = Arg(
        int,
        None,
        "How many samples an epoch of `weights` has, over all shards; by default as many as the data set, without "
        "replacement those with a weight above 0.",
        bits=64,
    )
    replacement = Arg(
        bool,
        True,
        "Whether `weights` may draw a sample again in the same epoch. Otherwise each draw is of those that are left.",
    )
    batch_by_length = Arg(
        object,
        None,
        "Puts samples of similar length into the same batch, so that padding wastes little. True takes the lengths "
        "that the reader knows: durations from manifests (`readers.nemo_asr`), otherwise sizes in bytes. An array "
        "(samples,) of numbers of 0 or more gives other ones. Without `shuffle`, an epoch goes from the shortest to "
        'the longest sample. With `shuffle="global"`, each batch is drawn from one of `num_buckets` ranges of lengths, '
        "batches come in random order, and all shards take batches of the same range at the same time. Implies "
        "`pad_last_batch`, so that each epoch consists of whole batches.",
    )
    num_buckets = Arg(
        int,
        30,
        "Number of ranges of lengths of `batch_by_length` with shuffling, which have equally many samples; fewer if "
        "there are fewer batches. More make the samples of a batch more alike, but mix them less from epoch to epoch.",
    )
    lazy_init = Arg(
        bool, False, "Looks for the samples when the first batch is read instead of when the pipeline is built."
    )
    prefetch_queue_depth = Arg(int, 1, "Accepted for compatibility; the pipeline's depth decides.", hidden=True)
    read_ahead = Arg(bool, False, "Accepted for compatibility; whole files are always read ahead.", hidden=True)
    dont_use_mmap = Arg(bool, False, "Accepted for compatibility; files are never mapped.", hidden=True)
    skip_cached_images = Arg(bool, False, "Accepted for compatibility; decoders keep no cache.", hidden=True)
    tensor_init_bytes = Arg(int, 1048576, "Accepted for compatibility; memory comes from a pool.", hidden=True)

    def setup(self) -> None:
        v = self.values
        if not 0 <= v["shard_id"] < v["num_shards"]:
            raise ValueError(
                f"{self.display_name()}: shard_id takes 0 to num_shards - 1, num_shards at least 1; "
                f"got shard_id={v['shard_id']}, num_shards={v['num_shards']}"
            )
        if v["shuffle"] not in (None, "global", "windows"):
            raise ValueError(f"{self.display_name()}: shuffle takes 'global' or 'windows'; got {v['shuffle']!r}")
        if v["shuffle_window"] < 1:
            raise ValueError(f"{self.display_name()}: shuffle_window takes at least 1; got {v['shuffle_window']}")
        if "shuffle_window" in self.given and v["shuffle"] != "windows":
            raise ValueError(f"{self.display_name()}: 'shuffle_window' can be used only with shuffle='windows'")
        is_weighted = v["weights"] is not None
        ways = [k for k in ("random_shuffle", "shuffle_after_epoch", "shuffle") if v[k]] + ["weights"] * is_weighted
        if len(ways) > 1:
            raise ValueError(f"{self.display_name()}: only one of {' and '.join(ways)} can be used")
        if v["shuffle_after_epoch"] and v["stick_to_shard"]:
            raise ValueError(f"{self.display_name()}: shuffle_after_epoch implies stick_to_shard; leave the latter out")
        if v["random_shuffle"] and v["initial_fill"] < 1:
            raise ValueError(f"{self.display_name()}: initial_fill takes at least 1; got {v['initial_fill']}")
        for name in self.given & {"num_samples", "replacement"} if not is_weighted else ():
            raise ValueError(f"{self.display_name()}: '{name}' can be used only together with 'weights'")
        if v["num_samples"] is not None and v["num_samples"] < 1:
            raise ValueError(f"{self.display_name()}: num_samples takes at least 1; got {v['num_samples']}")
        if v["num_buckets"] < 1:
            raise ValueError(f"{self.display_name()}: num_buckets takes at least 1; got {v['num_buckets']}")
        if not by_length(v):
            for name in self.given & {"num_buckets"}:
                raise ValueError(f"{self.display_name()}: '{name}' can be used only together with 'batch_by_length'")
        elif ways and v["shuffle"] != "global":
            way = "shuffle='windows'" if v["shuffle"] else ways[0]
            raise ValueError(
                f"{self.display_name()}: batch_by_length can't be used with {way}; to shuffle, use shuffle='global'"
            )

# SPDX-License-Identifier: Apache-2.0
"""The arguments of all readers for the order of samples: shards, shuffling, sampling, batches of similar length."""

from __future__ import annotations

from typing import Any

from ...core.op import Arg, Seeded
from ...core.source import Source


def by_length(values: dict[str, Any]) -> bool:
    """Whether batches have samples of similar length."""
    return values["batch_by_length"] is not None and values["batch_by_length"] is not False


class OrderArguments(Source, Seeded, abstract=True):
    """The arguments, and checks that do not need the data set."""

    num_shards = Arg(int, 1, "Number of parts into which the data set is divided, such as processes of a training run.")
    shard_id = Arg(
        int,
        0,
        "The part to read, 0 to num_shards - 1. It begins with sample floor(shard_id * size / num_shards) and ends "
        "where the next one begins.",
    )
    stick_to_shard = Arg(bool, False, "Whether to read the same shard in every epoch, instead of the next one.")
    pad_last_batch = Arg(
        bool,
        False,
        "Whether to repeat the shard's last sample at the end of each epoch, until all shards have returned the same "
        "number of samples and the batch is full. Otherwise batches continue into the next epoch.",
    )
    random_shuffle = Arg(
        bool,
        False,
        "Whether to shuffle: the data set once, in the same way in all shards, and then each epoch of a shard, with a "
        "buffer of `initial_fill` samples.",
    )
    initial_fill = Arg(int, 1024, "Size of the buffer of `random_shuffle`; it holds indices, not data.")
    shuffle_after_epoch = Arg(
        bool,
        False,
        "Whether to shuffle the whole data set before each epoch, in the same way in all shards. Implies "
        "`stick_to_shard`.",
    )
    shuffle_after_epoch_seed = Arg(int, None, "Seed of `shuffle_after_epoch`, the same in all shards.", bits=64)
    shuffle = Arg(
        str,
        None,
        '"global": an exact random permutation of the whole data set in each epoch, a function of (`seed`, epoch) '
        "without a buffer. Shards take turns along it, so the samples that all shards together have read after k "
        "batches do not depend on the number of shards. Without a `seed`, the reader uses the pipeline's if there is "
        "one shard, otherwise 0, so that all shards use the same. "
        '"windows": for samples stored in blocks (the row groups of Parquet files; the files of other formats): blocks '
        "are read in random order, and the samples of `shuffle_window` consecutive ones are mixed. Each shard reads "
        "its own blocks.",
    )
    shuffle_window = Arg(int, 16, 'Number of blocks whose samples `shuffle="windows"` mixes.')
    weights = Arg(
        object,
        None,
        "Draws samples at random, with a weight for each sample, an array (samples,), or for each label, a "
        "dictionary, if the reader knows labels in advance (`readers.file`). Draws are a function of (`seed`, epoch, "
        'draw), and shards take turns along them; without a `seed`, one is chosen as with `shuffle="global"`.',
    )
    num_samples = Arg(
        int,
        None,
        "Number of samples in an epoch of `weights`, over all shards. By default that of the data set, or without "
        "replacement that of the samples with a weight above 0.",
        bits=64,
    )
    replacement = Arg(
        bool,
        True,
        "Whether `weights` may draw a sample again in the same epoch. Otherwise each draw is from the remaining "
        "samples.",
    )
    batch_by_length = Arg(
        object,
        None,
        "Puts samples of similar length into the same batch, to reduce padding. True uses the lengths that the reader "
        "knows: durations from manifests (`readers.nemo_asr`), otherwise sizes in bytes. An array (samples,) of "
        "numbers of 0 or more gives other lengths. Without `shuffle`, an epoch is sorted from the shortest to the "
        'longest sample. With `shuffle="global"`, each batch is drawn from one of `num_buckets` ranges of lengths, '
        "batches are in random order, and all shards use batches of the same range at the same time. Implies "
        "`pad_last_batch`, so that each epoch consists of whole batches.",
    )
    num_buckets = Arg(
        int,
        30,
        "Number of ranges of lengths for `batch_by_length` with shuffling, all with the same number of samples; fewer "
        "if there are fewer batches. More ranges make the samples of a batch more alike, but mix them less between "
        "epochs.",
    )
    lazy_init = Arg(
        bool, False, "Whether to find the samples when the first batch is read instead of when the pipeline is built."
    )
    prefetch_queue_depth = Arg(
        int,
        1,
        "Number of batches of local files to read ahead, in addition to the batches that the pipeline makes ahead. "
        "With a GPU, and for data by URL, the pipeline chooses it.",
        hidden=True,
    )
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
        if v["prefetch_queue_depth"] < 1:
            raise ValueError(
                f"{self.display_name()}: prefetch_queue_depth takes at least 1; got {v['prefetch_queue_depth']}"
            )
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

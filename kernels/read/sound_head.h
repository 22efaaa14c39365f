// SPDX-License-Identifier: Apache-2.0
// The bytes of a file for an audio decoder: for some WAV and FLAC files only the beginning, as the decoder then reads
// the samples that it needs (unread.h); for others all. These are files of which only a small part is needed, and those
// in the system's cache, where reading ahead would just be one more copy.
#pragma once
#include "core/tensor.h"

struct SoundHeadArgs {
  int64_t least;  // files of at least this many bytes are read in part
};

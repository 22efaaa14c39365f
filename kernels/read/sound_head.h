// SPDX-License-Identifier: Apache-2.0
// The bytes of a file for who decodes its sound: of some WAV files the header alone, as the decoder then reads the
// samples that it needs itself (unread.h); of others all. These are files of which a part is needed that is much less
// than all, and those that are in the system's cache: reading them ahead would only move them through memory once more.
#pragma once
#include "core/tensor.h"

struct SoundHeadArgs {
  int64_t least;  // bytes of a file of which only a part is read
};

// SPDX-License-Identifier: Apache-2.0
// The bytes of a file for who decodes a part of its sound: of a long WAV file the header alone, as the decoder reads
// the samples that it needs itself (unread.h); of others all.
#pragma once
#include "core/tensor.h"

struct SoundHeadArgs {
  int64_t least;  // bytes of a file that is long
};

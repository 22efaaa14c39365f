// SPDX-License-Identifier: Apache-2.0
// Makes the clip of a sample: see video/clip.h.
#pragma once
#include "core/tensor.h"

struct VideoClipArgs {
  int64_t files;          // of video_files_open
  const int64_t *file;    // per sample
  const int64_t *offset;  // per sample: where its span begins in the file
  const int32_t *frames;  // `count` per sample; -1 after the last one
  int64_t count;
};

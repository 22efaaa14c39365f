// SPDX-License-Identifier: Apache-2.0
// Makes the clip of a sample: see video/clip.h.
#pragma once
#include "core/tensor.h"

struct VideoClipArgs {
  int64_t files;          // of video_files_open
  const int64_t *file;    // of each sample
  const int64_t *offset;  // of each sample: where its span begins in the file
  const int32_t *frames;  // of each sample `count`; -1 behind its last one
  int64_t count;
};

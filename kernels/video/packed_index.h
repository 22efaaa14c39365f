// SPDX-License-Identifier: Apache-2.0
// An index as bytes: in clips, and in the user's cache. Numbers are this machine's.
#pragma once
#include "video/index.h"

int64_t packed_size(const VideoIndex &index);
void pack_index(const VideoIndex &index, uint8_t *to);  // packed_size(index) bytes

// What lies from *at on, which is moved behind it. Fails if that is not an index.
VideoIndex unpack_index(Bytes b, int64_t *at);

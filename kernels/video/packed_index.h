// SPDX-License-Identifier: Apache-2.0
// Serialized indices: in clips, and in the user's cache. In native byte order.
#pragma once
#include "video/index.h"

int64_t packed_size(const VideoIndex &index);
void pack_index(const VideoIndex &index, uint8_t *to);  // packed_size(index) bytes

// Reads an index at *at and moves *at past it. Fails if it is no valid index.
VideoIndex unpack_index(Bytes b, int64_t *at);

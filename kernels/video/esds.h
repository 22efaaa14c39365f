// SPDX-License-Identifier: Apache-2.0
// MPEG-4's stream descriptors in MP4 files.
#pragma once
#include "video/index.h"

// Reads esds (ISO/IEC 14496-14), the kind of stream and its configuration. Returns the object type.
uint32_t read_esds(Bytes b, VideoIndex *index);

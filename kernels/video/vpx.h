// SPDX-License-Identifier: Apache-2.0
// Reads the picture format in the first header of a key frame of VP8 or VP9.
#pragma once
#include "video/parameter_sets.h"

// Fails if the packet does not begin with a key frame.
StreamFormat read_vp8_format(Bytes packet);
StreamFormat read_vp9_format(Bytes packet);

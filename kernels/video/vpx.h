// SPDX-License-Identifier: Apache-2.0
// What the first header of a key frame of VP8 or VP9 says of the pictures.
#pragma once
#include "video/parameter_sets.h"

// Fails if the packet begins with no key frame.
StreamFormat read_vp8_format(Bytes packet);
StreamFormat read_vp9_format(Bytes packet);

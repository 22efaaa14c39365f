// SPDX-License-Identifier: Apache-2.0
// Pictures of video decoders to RGB.
#pragma once
#include "video/decoder.h"

// A rectangle of `picture` as interleaved RGB (or BGR), 8 bits a channel. `rows` is scratch memory for rows of planes.
void picture_to_rgb(const Picture &picture, int64_t y, int64_t x, int64_t height, int64_t width, uint8_t *out,
                    Scratch &scratch);

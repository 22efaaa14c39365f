// SPDX-License-Identifier: Apache-2.0
// Frames of FLAC (RFC 9639): some thousand samples of each channel, which are decoded without any other frame.
#pragma once
#include <cstdint>

// What the stream says of all its frames.
struct FlacStream {
  int64_t frames;  // samples of each channel
  int32_t rate, channels, bits;
  int32_t longest;  // samples of a frame; all but the last of a stream have as many, unless they say where they begin
};

// How channels are told from one another; below LEFT_SIDE, they stand on their own.
enum FlacAssignment : int32_t { LEFT_SIDE = 8, SIDE_RIGHT = 9, MID_SIDE = 10 };

struct FlacFrame {
  int64_t first;  // its first sample's index
  int32_t length, header_size;
  int32_t assignment;  // enum FlacAssignment
};

constexpr int kFlacLeast = 10;  // bytes of a frame

// Whether a frame of the stream begins at `p`, of which `size` bytes may be read.
bool read_flac_header(FlacFrame &frame, const uint8_t *p, int64_t size, const FlacStream &stream);
// Decodes it; channel c, as the frame tells it, is written at planes + c * pitch. Returns its size in bytes; throws if
// it is damaged.
int64_t decode_flac_frame(int32_t *planes, int64_t pitch, const uint8_t *p, int64_t size, const FlacFrame &frame,
                          const FlacStream &stream);

// SPDX-License-Identifier: Apache-2.0
// Frames of FLAC (RFC 9639): a few thousand samples per channel, decodable without other frames.
#pragma once
#include <cstdint>

// What the stream's header says of all frames.
struct FlacStream {
  int64_t frames;  // samples per channel
  int32_t rate, channels, bits;
  int32_t longest;  // maximum samples per frame; all but the last have this many, unless frames carry sample numbers
};

// How channels are stored; below LEFT_SIDE, they are independent.
enum FlacAssignment : int32_t { LEFT_SIDE = 8, SIDE_RIGHT = 9, MID_SIDE = 10 };

struct FlacFrame {
  int64_t first;  // index of its first sample
  int32_t length, header_size;
  int32_t assignment;  // enum FlacAssignment
};

constexpr int kFlacLeast = 10;  // minimum bytes of a frame

// Whether a frame of the stream begins at `p`, where `size` bytes may be read.
bool read_flac_header(FlacFrame &frame, const uint8_t *p, int64_t size, const FlacStream &stream);
// Decodes a frame; its channel c, as stored, is written at planes + c * pitch. Returns its size in bytes; throws if it
// is damaged.
int64_t decode_flac_frame(int32_t *planes, int64_t pitch, const uint8_t *p, int64_t size, const FlacFrame &frame,
                          const FlacStream &stream);

// SPDX-License-Identifier: Apache-2.0
// Converts H.264 and HEVC for the GPU's decoder: NAL units with start codes, parameter sets first; and reads picture
// formats from parameter sets.
#pragma once
#include "video/index.h"

struct StreamFormat {
  int32_t chroma = 1;  // 0: none, 1: 4:2:0, 2: 4:2:2, 3: 4:4:4
  int32_t bits = 8;
  int32_t matrix = 2;  // ITU-T H.273; 2: unspecified
  bool is_full_range = false;
  int32_t siting = 1;  // of chroma samples, as FFmpeg numbers them (see ycbcr.h)

  bool operator==(const StreamFormat &o) const {
    return chroma == o.chroma && bits == o.bits && matrix == o.matrix && is_full_range == o.is_full_range &&
           siting == o.siting;
  }
};

// Whether the codec has NAL units: H.264 or HEVC.
bool has_units(const VideoIndex &index);

// The container's parameter sets; empty if they are in the stream.
std::vector<uint8_t> parameter_sets(const VideoIndex &index);

// Appends a packet; unchanged for codecs without units. Fails if its units are longer than it.
void append_packet(const VideoIndex &index, Bytes packet, std::vector<uint8_t> &to);

// The format in the sequence parameter sets of a stream with start codes. Fails if there are none, or if they differ.
StreamFormat read_stream_format(const VideoIndex &index, Bytes stream);

// Whether a packet of HEVC holds a picture that decoders skip when they begin at the preceding key picture, as it
// refers to earlier pictures (RASL).
bool is_skipped_leading(const VideoIndex &index, Bytes packet);

// SPDX-License-Identifier: Apache-2.0
// H.264 and HEVC as the GPU's decoder takes them: NAL units behind start codes, parameter sets first; and what the
// parameter sets say of the pictures.
#pragma once
#include "video/index.h"

struct StreamFormat {
  int32_t chroma = 1;  // 0: none, 1: 4:2:0, 2: 4:2:2, 3: 4:4:4
  int32_t bits = 8;
  int32_t matrix = 2;  // ITU-T H.273; 2: not said
  bool is_full_range = false;
  int32_t siting = 1;  // of chroma samples, as FFmpeg numbers them (see ycbcr.h)

  bool operator==(const StreamFormat &o) const {
    return chroma == o.chroma && bits == o.bits && matrix == o.matrix && is_full_range == o.is_full_range &&
           siting == o.siting;
  }
};

// Whether it is a codec with NAL units: H.264 or HEVC.
bool has_units(const VideoIndex &index);

// The parameter sets that the container has; empty if they lie in the stream.
std::vector<uint8_t> parameter_sets(const VideoIndex &index);

// Appends a packet; of codecs without units, as it is. Fails if its units are longer than it.
void append_packet(const VideoIndex &index, Bytes packet, std::vector<uint8_t> &to);

// What the sequence parameter sets in a stream with start codes say. Fails if there are none, or if they differ.
StreamFormat read_stream_format(const VideoIndex &index, Bytes stream);

// Whether a packet of HEVC holds a picture that decoders skip where decoding begins at the key picture before it, as it
// refers to what is before that (RASL).
bool is_skipped_leading(const VideoIndex &index, Bytes packet);

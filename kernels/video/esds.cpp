// SPDX-License-Identifier: Apache-2.0
#include "video/esds.h"

#include <algorithm>

#include "video/codecs.h"

namespace {

// The length of a descriptor of MPEG-4 systems: 7 bits per byte.
int64_t descriptor_length(Bytes b, int64_t *at) {
  int64_t n = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t c = b.u8((*at)++);
    n = n << 7 | (c & 127);
    if (!(c & 128)) break;
  }
  return n;
}

}  // namespace

uint32_t read_esds(Bytes b, VideoIndex *index) {
  int64_t at = 4;
  uint32_t object = 0;
  while (at + 2 <= b.size) {
    const uint32_t kind = b.u8(at++);
    const int64_t n = descriptor_length(b, &at);
    if (kind == 3) {  // ES_Descriptor: its fields, then other descriptors
      const uint32_t flags = b.u8(at + 2);
      at += 3 + (flags & 0x80 ? 2 : 0) + (flags & 0x20 ? 2 : 0);
      if (flags & 0x40) at += 1 + b.u8(at);
    } else if (kind == 4) {  // DecoderConfigDescriptor
      index->codec = codec_of_object(object = b.u8(at));
      at += 13;
    } else if (kind == 5) {  // DecoderSpecificInfo
      const Bytes part = b.part(at, std::min(n, b.size - at));
      index->extradata.assign(part.data, part.data + part.size);
      return object;
    } else {
      at += n;
    }
  }
  return object;
}

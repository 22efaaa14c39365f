// SPDX-License-Identifier: Apache-2.0
#include "video/packed_index.h"

#include <algorithm>

#include "video/codecs.h"
#include "video/elementary.h"

namespace {

// Followed by the packets, how they are cut into pieces if they are, the frames (int32), their times (int64), the
// configuration and the prefix.
struct Head {
  char codec[16];
  int64_t timescale, n_packets, n_frames, n_extradata, n_prefix;
  int32_t width, height, rotation, wrapping, stream, unused;
};

}  // namespace

int64_t packed_size(const VideoIndex &index) {
  return (int64_t)(sizeof(Head) + index.packets.size() * sizeof(Packet) + index.wrapped.size() * sizeof(Wrapped) +
                   index.shown.size() * (sizeof(int32_t) + sizeof(int64_t)) + index.extradata.size() +
                   index.prefix.size());
}

void pack_index(const VideoIndex &index, uint8_t *to) {
  Head head{};
  strncpy(head.codec, index.codec, sizeof head.codec - 1);
  head.timescale = index.timescale, head.n_packets = (int64_t)index.packets.size();
  head.n_frames = (int64_t)index.shown.size();
  head.n_extradata = (int64_t)index.extradata.size(), head.n_prefix = (int64_t)index.prefix.size();
  head.width = index.width, head.height = index.height, head.rotation = index.rotation;
  head.wrapping = index.wrapping, head.stream = index.stream;
  memcpy(to, &head, sizeof head), to += sizeof head;
  const auto put = [&](const auto &from) {
    const size_t size = from.size() * sizeof(from[0]);
    if (size) memcpy(to, from.data(), size);
    to += size;
  };
  put(index.packets), put(index.wrapped), put(index.shown), put(index.times), put(index.extradata), put(index.prefix);
}

VideoIndex unpack_index(Bytes b, int64_t *at) {
  Head head;
  memcpy(&head, b.need(*at, sizeof head), sizeof head), *at += sizeof head;
  for (const int64_t n : {head.n_packets, head.n_frames, head.n_extradata, head.n_prefix})
    if (n < 0 || n > b.size || n > INT32_MAX) fail("an index that is damaged");
  VideoIndex index;
  index.codec = codec_named({head.codec, strnlen(head.codec, sizeof head.codec)});
  index.timescale = std::max<int64_t>(1, head.timescale);
  index.width = head.width, index.height = head.height, index.rotation = head.rotation;
  index.wrapping = head.wrapping, index.stream = head.stream;
  if (index.wrapping && index.wrapping != PROGRAM_STREAM && index.wrapping < FIRST_TRANSPORT)
    fail("an index that is damaged");
  const auto get = [&](auto &to, int64_t n) {
    const int64_t size = n * (int64_t)sizeof(to[0]);
    const uint8_t *from = b.need(*at, size);
    to.resize((size_t)n);
    if (size) memcpy(to.data(), from, (size_t)size);
    *at += size;
  };
  get(index.packets, head.n_packets), get(index.wrapped, index.wrapping ? head.n_packets : 0);
  get(index.shown, head.n_frames), get(index.times, head.n_frames);
  get(index.extradata, head.n_extradata), get(index.prefix, head.n_prefix);
  for (const Packet &p : index.packets)
    if (p.size < 0 || p.offset < 0) fail("an index that is damaged");
  for (const Wrapped &w : index.wrapped)
    if (w.skip < 0 || w.size < 0) fail("an index that is damaged");
  for (const int32_t i : index.shown)
    if (i < 0 || i >= head.n_packets) fail("an index that is damaged");
  return index;
}

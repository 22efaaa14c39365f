// SPDX-License-Identifier: Apache-2.0
// Damages videos and lets what reads their indices loose on them, under AddressSanitizer. Built and run by
// fuzz_video.py.
//
//   fuzz_video NAME LIMIT SEED FILE...
//
// Every input lies in memory of exactly its size. Of an index that is found, some frames are asked for: where they lie,
// which packets they need, and the clip of them, which is read again, as it is and damaged. Its packets and parameter
// sets are read as for the GPU's decoder. Nothing is decoded.
#include <memory>

#include "damage.h"
#include "video/clip.h"
#include "video/parameter_sets.h"
#include "video/runs.h"

namespace {

struct Counts {
  int64_t inputs = 0, indices = 0, frames = 0, clips = 0, formats = 0;
};

// Memory of exactly the size of a file, so that a read beyond its end is seen.
struct Exact {
  std::unique_ptr<uint8_t[]> data;
  int64_t size;
  explicit Exact(const File &file) : data(new uint8_t[file.size()]), size((int64_t)file.size()) {
    if (size) memcpy(data.get(), file.data(), file.size());
  }
  Bytes bytes() const { return {data.get(), size}; }
};

struct Clip : ClipBytes {
  explicit Clip(Bytes from) : file(from) {}
  const uint8_t *packet(int64_t offset, int64_t size) override { return file.need(offset, size); }
  void *take(int64_t size) override {
    clip.resize((size_t)size);
    return clip.data();
  }
  Bytes file;
  File clip;
};

// What the decoder relies on.
void check(const VideoIndex &index) {
  if (index.shown.size() != index.times.size() || index.timescale < 1) abort();
  for (const int32_t i : index.shown)
    if (i < 0 || i >= (int64_t)index.packets.size()) abort();
  for (const Packet &p : index.packets)
    if (p.offset < 0 || p.size < 0) abort();
  if (index.wrapped.size() != (index.wrapping ? index.packets.size() : 0)) abort();
  for (const Wrapped &w : index.wrapped)
    if (w.skip < 0 || w.size < 0) abort();
}

// What the GPU's decoder is given, and what its parameter sets say. Half of the time they are damaged, in memory of
// exactly their size, as whole files seldom are there.
void read_for_gpu(VideoIndex index, Bytes file, Random &r, Counts &counts) {
  if (!has_units(index)) return;
  const auto spoil = [&](std::vector<uint8_t> &bytes) {
    if (!bytes.empty() && r() % 2) bytes = mutate({bytes}, r);
    bytes.shrink_to_fit();
  };
  spoil(index.extradata);
  try {
    std::vector<uint8_t> stream = parameter_sets(index);
    for (size_t i = 0; i < std::min<size_t>(index.packets.size(), 3); i++) {
      const Packet &p = index.packets[i];
      if (!file.has(p.offset, p.size)) break;
      std::vector<uint8_t> packet(file.data + p.offset, file.data + p.offset + p.size);
      spoil(packet);
      const Bytes exact{packet.data(), (int64_t)packet.size()};
      is_skipped_leading(index, exact);
      append_packet(index, exact, stream);
    }
    spoil(stream);
    const StreamFormat f = read_stream_format(index, {stream.data(), (int64_t)stream.size()});
    if (f.chroma < 0 || f.chroma > 3 || f.bits < 8 || f.bits > 16 || f.siting < 1 || f.siting > 6) abort();
    counts.formats++;
  } catch (const std::exception &) {
  }
}

void use(const VideoIndex &index, Bytes file, Random &r, Counts &counts) {
  std::vector<int32_t> frames;
  for (uint64_t k = 1 + below(r, 5); k--;) frames.push_back((int32_t)below(r, index.shown.size()));
  counts.frames += (int64_t)frames.size();
  int64_t begin, end;
  span_of_clip(index, frames.data(), (int64_t)frames.size(), &begin, &end);
  if (begin < 0 || begin > end) abort();
  Clip clip(file);
  const VideoFiles files{{index}, {""}};
  if (make_clip(files, 0, frames.data(), (int64_t)frames.size(), clip) != (int64_t)clip.clip.size()) abort();
  counts.clips++;
  const VideoIndex again = read_video_index(Exact(clip.clip).bytes());
  check(again);
  if (again.shown.size() != frames.size()) abort();
  read_for_gpu(again, {clip.clip.data(), (int64_t)clip.clip.size()}, r, counts);
  try {
    const Exact damaged(mutate({clip.clip}, r));
    check(read_video_index(damaged.bytes()));
  } catch (const std::exception &) {
  }
}

void try_one(const File &file, Random &r, Counts &counts) {
  counts.inputs++;
  const Exact exact(file);
  try {
    // Both ways: from memory, and by pieces as from a disk.
    const VideoIndex index = r() % 4 ? read_video_index(exact.bytes()) : read_video_index(source_of(exact.bytes()));
    check(index);
    counts.indices++;
    if (!index.shown.empty()) use(index, exact.bytes(), r, counts);
  } catch (const std::exception &) {
  }
}

}  // namespace

int main(int argc, char **argv) {
  Counts counts;
  const int status = fuzz(argc, argv, [&](const File &file, Random &r) { try_one(file, r, counts); });
  printf("%lld inputs: %lld indices, %lld frames, %lld clips, %lld formats\n", (long long)counts.inputs,
         (long long)counts.indices, (long long)counts.frames, (long long)counts.clips, (long long)counts.formats);
  return status;
}

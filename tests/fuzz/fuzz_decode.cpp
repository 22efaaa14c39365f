// SPDX-License-Identifier: Apache-2.0
// Damages real files and lets the decoders loose on them, under AddressSanitizer. Built and run by fuzz_decode.py.
//
//   fuzz_decode NAME LIMIT SEED FILE...
//
// Every input lies in memory of exactly its size. The output is filled with a pattern first: an image that is reported
// as good must have been written completely, so it must come out the same over two different patterns.
#include <memory>

#include "damage.h"
#include "decode/decode.h"
#include "decode/image.h"

extern "C" int decode(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);

namespace {

constexpr int64_t kMostPixels = 1 << 22;  // larger headers are the caller's to refuse
struct Counts {
  int64_t inputs = 0, headers = 0, images = 0, large = 0;
};

void try_one(const File &file, Random &r, Scratch &scratch, Counts &counts) {
  counts.inputs++;
  std::unique_ptr<uint8_t[]> bytes(new uint8_t[file.size()]);  // exact size; no slack
  memcpy(bytes.get(), file.data(), file.size());
  ImageInfo info;
  try {
    info = peek_image({bytes.get(), (int64_t)file.size()});
  } catch (const std::exception &) {
    return;
  }
  counts.headers++;
  int scale = info.format == FORMAT_JPEG ? 1 << below(r, 4) : 1;
  if (below(r, 3)) scale = 1;
  int64_t h = ((int64_t)info.height + scale - 1) / scale, w = ((int64_t)info.width + scale - 1) / scale;
  int orientation = r() % 2 ? info.orientation : 1 + (int)below(r, 8);
  if (orientation >= 5) std::swap(h, w);
  if ((int64_t)info.height * info.width > kMostPixels || info.channels > 64) {
    counts.large++;
    return;
  }
  int type = (int)below(r, 5), channels = type == GRAY ? 1 : type == ANY_DATA ? info.channels : 3;
  static const int dtypes[] = {UINT8, UINT8, UINT8, UINT16, INT8, INT16, INT32, UINT32, FLOAT};
  Tensor out{nullptr, {h, w, channels}, 3, dtypes[below(r, 9)]};
  DecodeArgs a{0, 0, info.format, info.height, info.width, orientation, type, scale, (int)(r() % 2), r() % 4 == 0};
  if (r() % 2) {
    a.y = (int64_t)below(r, h);
    a.x = (int64_t)below(r, w);
    out.shape[0] = 1 + (int64_t)below(r, h - a.y);
    out.shape[1] = 1 + (int64_t)below(r, w - a.x);
  }
  Tensor in{bytes.get(), {(int64_t)file.size()}, 1, UINT8};
  int64_t n = out.volume() * item_size(out.dtype);
  std::unique_ptr<uint8_t[]> first(new uint8_t[n]), second(new uint8_t[n]);
  char error[kErrorSize];
  memset(first.get(), 0x00, n);
  out.data = first.get();
  if (decode(&out, &in, &a, &scratch, error)) return;
  memset(second.get(), 0xa7, n);
  // What the thread's scratch memory held before must not show either.
  for (int part = 0; part < Scratch::kParts; part++) memset(scratch.get(4096, part), 0x5c, 4096);
  out.data = second.get();
  if (decode(&out, &in, &a, &scratch, error) || memcmp(first.get(), second.get(), n)) {
    fprintf(stderr, "an image of format %d was not written completely\n", info.format);
    abort();
  }
  counts.images++;
}

}  // namespace

int main(int argc, char **argv) {
  Scratch scratch;
  Counts counts;
  if (int failed = fuzz(argc, argv, [&](const File &file, Random &r) { try_one(file, r, scratch, counts); }))
    return failed;
  printf("%lld inputs, %lld with a readable header (%lld of them too large), %lld decoded\n", (long long)counts.inputs,
         (long long)counts.headers, (long long)counts.large, (long long)counts.images);
  return 0;
}

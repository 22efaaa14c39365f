// SPDX-License-Identifier: Apache-2.0
// Damages real files and lets the decoders loose on them, under AddressSanitizer. Built and run by fuzz_decode.py.
//
//   fuzz_decode SECONDS SEED FILE...
//
// Every input lies in memory of exactly its size. The output is filled with a pattern first: an image that is reported
// as good must have been written completely, so it must come out the same over two different patterns.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "decode/decode.h"
#include "decode/image.h"

extern "C" int decode(Tensor *out, const Tensor *in, const void *args, Scratch *scratch, char *error);

namespace {

using File = std::vector<uint8_t>;
using Random = std::mt19937_64;

constexpr int64_t kMostPixels = 1 << 22;  // larger headers are the caller's to refuse
File current;                             // for the crash report
std::string crash_file;

void save_and_die(int signal) {
  if (FILE *f = fopen(crash_file.c_str(), "wb")) {
    fwrite(current.data(), 1, current.size(), f);
    fclose(f);
  }
  fprintf(stderr, "signal %d; the input is in %s\n", signal, crash_file.c_str());
  _exit(1);
}

uint64_t below(Random &r, uint64_t n) { return n ? r() % n : 0; }

File mutate(const std::vector<File> &seeds, Random &r) {
  File f = seeds[below(r, seeds.size())];
  for (uint64_t i = 1 + below(r, 4); i--;) {
    // Most structure is at the front.
    uint64_t at = below(r, r() % 2 ? f.size() : std::min<uint64_t>(f.size(), 200));
    switch (below(r, 8)) {
      case 0:
        if (!f.empty()) f[at] ^= 1 << below(r, 8);
        break;
      case 1:
        if (!f.empty()) f[at] = (uint8_t)r();
        break;
      case 2:
        f.resize(below(r, f.size() + 1));
        break;
      case 3: {  // an extreme 16- or 32-bit number
        static const uint32_t extremes[] = {0,      1,      0x7f,    0x80,       0xff,       0x100,     0x7fff,
                                            0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff};
        uint32_t v = extremes[below(r, 13)];
        int n = r() % 2 ? 4 : 2, big = r() % 2;
        for (int k = 0; k < n && at + k < f.size(); k++) f[at + k] = (uint8_t)(v >> 8 * (big ? n - 1 - k : k));
        break;
      }
      case 4: {  // a piece of another file
        const File &g = seeds[below(r, seeds.size())];
        uint64_t from = below(r, g.size()), n = std::min<uint64_t>(below(r, 300), g.size() - from);
        f.insert(f.begin() + at, g.begin() + from, g.begin() + from + n);
        break;
      }
      case 5: {  // a piece taken out
        uint64_t n = std::min<uint64_t>(below(r, 64), f.size() - at);
        f.erase(f.begin() + at, f.begin() + at + n);
        break;
      }
      case 6: {  // a piece of itself again
        uint64_t from = below(r, f.size()), n = std::min<uint64_t>(below(r, 64), f.size() - from);
        File piece(f.begin() + from, f.begin() + from + n);
        f.insert(f.begin() + at, piece.begin(), piece.end());
        break;
      }
      default:
        for (uint64_t k = below(r, 16); k-- && at + k < f.size();) f[at + k] = (uint8_t)r();
    }
  }
  return f;
}

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
  if (argc < 4) return fprintf(stderr, "usage: %s SECONDS SEED FILE...\n", argv[0]), 2;
  double seconds = atof(argv[1]);
  Random r(strtoull(argv[2], nullptr, 10));
  crash_file = std::string("crash-") + argv[2];
  signal(SIGABRT, save_and_die);
  std::vector<File> seeds;
  for (int i = 3; i < argc; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f) return perror(argv[i]), 2;
    File file(1 << 20);
    file.resize(fread(file.data(), 1, file.size(), f));
    fclose(f);
    seeds.push_back(file);
  }
  Scratch scratch;
  Counts counts;
  // The files themselves, or with SECONDS = 0 only they: how a crash is repeated.
  for (const File &f : seeds)
    for (int i = 0; i < 20; i++) try_one(current = f, r, scratch, counts);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 50; i++) {
      current = mutate(seeds, r);
      auto begin = std::chrono::steady_clock::now();
      try_one(current, r, scratch, counts);
      double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (took > 20) {
        fprintf(stderr, "one input took %.1f s\n", took);
        abort();
      }
    }
  printf("%lld inputs, %lld with a readable header (%lld of them too large), %lld decoded\n", (long long)counts.inputs,
         (long long)counts.headers, (long long)counts.large, (long long)counts.images);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Damages files and lets a decoder loose on them until the time is up.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using File = std::vector<uint8_t>;
using Random = std::mt19937_64;

inline File current;  // for the crash report
inline std::string crash_file;

inline void save_and_die(int signal) {
  if (FILE *f = fopen(crash_file.c_str(), "wb")) {
    fwrite(current.data(), 1, current.size(), f);
    fclose(f);
  }
  fprintf(stderr, "signal %d; the input is in %s\n", signal, crash_file.c_str());
  _exit(1);
}

inline uint64_t below(Random &r, uint64_t n) { return n ? r() % n : 0; }

inline File mutate(const std::vector<File> &seeds, Random &r) {
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
      case 3: {  // an extreme number of 8 to 64 bits
        static const uint64_t extremes[] = {0,
                                            1,
                                            0x7f,
                                            0x80,
                                            0xff,
                                            0x100,
                                            0x7fff,
                                            0x8000,
                                            0xffff,
                                            0x10000,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            0x7fffffffffffffff,
                                            0x8000000000000000,
                                            0xffffffffffffffff};
        const uint64_t v = extremes[below(r, 16)], n = 1ull << below(r, 4);
        const bool big = r() % 2;
        for (uint64_t k = 0; k < n && at + k < f.size(); k++) f[at + k] = (uint8_t)(v >> 8 * (big ? n - 1 - k : k));
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

// SECONDS SEED FILE...: `try_one(file, random)` for the files themselves, or with SECONDS = 0 only for them, which is
// how a crash is repeated, and for what damage makes of them.
template <class Try>
int fuzz(int argc, char **argv, Try try_one) {
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
  for (const File &f : seeds)
    for (int i = 0; i < 20; i++) try_one(current = f, r);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 50; i++) {
      current = mutate(seeds, r);
      auto begin = std::chrono::steady_clock::now();
      try_one(current, r);
      double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (took > 20) {
        fprintf(stderr, "one input took %.1f s\n", took);
        abort();
      }
    }
  return 0;
}

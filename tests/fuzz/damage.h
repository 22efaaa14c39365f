// SPDX-License-Identifier: Apache-2.0
// Damages files and lets what reads them loose on them, until the time is up or so many were tried.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
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
    uint64_t at = below(r, r() % 2 ? f.size() : std::min<uint64_t>(f.size(), r() % 2 ? 200 : 600));
    switch (below(r, 10)) {
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
      case 7: {  // a piece of itself elsewhere, in the place of what was there
        uint64_t from = below(r, f.size()), n = std::min<uint64_t>(below(r, 64), f.size() - std::max(from, at));
        for (uint64_t k = 0; k < n; k++) f[at + k] = f[from + k];
        break;
      }
      case 8: {  // digits and brackets, for formats that are text
        static const char text[] = "0123456789-+.e[]{}\",:()' \\u";
        for (uint64_t k = below(r, 6); k-- && at + k < f.size();) f[at + k] = (uint8_t)text[below(r, sizeof text - 1)];
        break;
      }
      default:
        for (uint64_t k = below(r, 16); k-- && at + k < f.size();) f[at + k] = (uint8_t)r();
    }
  }
  return f;
}

// NAME LIMIT SEED FILE...: `try_one(file, random)` for the files themselves, and for what damage makes of them: for so
// many seconds, or so many inputs where the limit is such as "1000x". With a limit of 0 only for the files, which is
// how a crash is repeated. `mend(file, random)` may make a damaged file one that is worth to be tried, by checksums
// that fit.
template <class Try, class Mend>
int fuzz(int argc, char **argv, Try try_one, Mend mend) {
  if (argc < 5) return fprintf(stderr, "usage: %s NAME LIMIT SEED FILE...\n", argv[0]), 2;
  char *unit;
  const double limit = strtod(argv[2], &unit);
  Random r(strtoull(argv[3], nullptr, 10));
  crash_file = std::string("crash-") + argv[1] + "-" + argv[3];
  signal(SIGABRT, save_and_die);
  std::vector<File> seeds;
  for (int i = 4; i < argc; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f) return perror(argv[i]), 2;
    File file(1 << 20);
    file.resize(fread(file.data(), 1, file.size(), f));
    fclose(f);
    seeds.push_back(file);
  }
  for (const File &f : seeds)
    for (int i = 0; i < 20; i++) try_one(current = f, r);
  const auto begin = std::chrono::steady_clock::now();
  auto goes_on = [&](int64_t n) {
    if (*unit == 'x') return (double)n < limit;
    return n % 50 || std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < limit;
  };
  for (int64_t n = 0; limit > 0 && goes_on(n); n++) {
    current = mutate(seeds, r);
    mend(current, r);
    const clock_t before = clock();  // time of the processor, as the machine may be busy with other things
    try_one(current, r);
    const double took = (double)(clock() - before) / CLOCKS_PER_SEC;
    if (took > 20) {
      fprintf(stderr, "one input took %.1f s of the processor\n", took);
      abort();
    }
  }
  signal(SIGABRT, SIG_DFL);  // leaks are told at the exit, when there is no input any more
  return 0;
}

template <class Try>
int fuzz(int argc, char **argv, Try try_one) {
  return fuzz(argc, argv, try_one, [](File &, Random &) {});
}

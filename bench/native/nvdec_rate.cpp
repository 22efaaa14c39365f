// SPDX-License-Identifier: Apache-2.0
// NVIDIA's video engines alone: decodes a stream again and again in a number of sessions, a thread each, maps every
// picture and does nothing with it, and prints frames per second. What a pipeline can reach at most.
//
//   c++ -O2 -std=c++17 -Ikernels -o nvdec_rate bench/native/nvdec_rate.cpp -ldl -lpthread
//   ./nvdec_rate SECONDS SESSIONS h264|hevc|vp9 STREAM
//
// STREAM: H.264 or HEVC with start codes, or packets, each behind its size (4 bytes, little endian).
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "video/cuvid.h"

namespace {

template <class F>
void find(void *library, const char *name, F *to) {
  *to = (F)dlsym(library, name);
  if (!*to) fprintf(stderr, "no %s\n", name), exit(1);
}

void *open(std::vector<const char *> paths) {
  for (const char *path : paths)
    if (void *library = dlopen(path, RTLD_NOW)) return library;
  fprintf(stderr, "%s\n", dlerror());
  exit(1);
}

void check(int code, const char *doing) {
  if (code) fprintf(stderr, "%s: CUDA error %d\n", doing, code), exit(1);
}

cuvid::Functions f;
int (*set_current)(void *);
void *context;
std::atomic<bool> is_over{false};
std::atomic<int64_t> n_frames{0};

struct Session {
  cuvid::Decoder decoder = nullptr;

  static int on_sequence(void *user, cuvid::Format *s) {
    Session &own = *(Session *)user;
    const int n = s->min_surfaces + 4;
    if (own.decoder) return n;
    cuvid::Creation c{};
    c.width = c.max_width = c.out_width = s->width, c.height = c.max_height = c.out_height = s->height;
    c.n_surfaces = (uint64_t)n, c.n_mapped = 2, c.codec = s->codec, c.chroma = s->chroma;
    c.bits_minus_8 = s->luma_bits_minus_8, c.surface = s->luma_bits_minus_8 ? cuvid::P016 : cuvid::NV12;
    c.shown = c.target = {0, 0, (int16_t)s->width, (int16_t)s->height};
    check(f.create(&own.decoder, &c), "cuvidCreateDecoder");
    return n;
  }
  static int on_picture(void *user, cuvid::PictureHead *picture) {
    check(f.decode(((Session *)user)->decoder, picture), "cuvidDecodePicture");
    return 1;
  }
  static int on_shown(void *user, cuvid::Shown *shown) {
    if (!shown) return 1;
    Session &own = *(Session *)user;
    cuvid::Mapping m{};
    m.is_progressive = 1;
    uint64_t address;
    uint32_t line;
    check(f.map(own.decoder, shown->index, &address, &line, &m), "cuvidMapVideoFrame64");
    check(f.unmap(own.decoder, address), "cuvidUnmapVideoFrame64");
    n_frames++;
    return 1;
  }

  void run(int codec, const std::vector<std::string> &packets) {
    check(set_current(context), "cuCtxSetCurrent");
    cuvid::ParserCreation c{};
    c.codec = codec, c.n_surfaces = 1, c.delay = 4, c.user = this;
    c.on_sequence = on_sequence, c.on_picture = on_picture, c.on_shown = on_shown;
    cuvid::Parser parser;
    check(f.create_parser(&parser, &c), "cuvidCreateVideoParser");
    while (!is_over)
      for (const std::string &p : packets) {
        cuvid::Data data{0, p.size(), (const uint8_t *)p.data(), 0};
        check(f.parse(parser, &data), "cuvidParseVideoData");
        if (is_over) break;
      }
    f.destroy_parser(parser);
    if (decoder) f.destroy(decoder);
  }
};

std::vector<std::string> packets_of(const char *path, bool has_sizes) {
  FILE *file = fopen(path, "rb");
  if (!file) perror(path), exit(1);
  std::vector<std::string> packets;
  std::string bytes(1 << 16, 0);
  for (uint32_t size = (uint32_t)bytes.size(); !has_sizes || fread(&size, 4, 1, file) == 1;) {
    bytes.resize(size);
    bytes.resize(fread(&bytes[0], 1, size, file));
    if (bytes.empty()) break;
    packets.push_back(bytes);
  }
  fclose(file);
  return packets;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s SECONDS SESSIONS h264|hevc|vp9 STREAM\n", argv[0]), 2;
  const std::string name = argv[3];
  const int codec = name == "h264" ? cuvid::H264 : name == "hevc" ? cuvid::HEVC : cuvid::VP9;
  const auto packets = packets_of(argv[4], codec == cuvid::VP9);
  void *cuda = open({"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"});
  void *cuvid = open({"libnvcuvid.so.1", "/usr/local/nvidia/lib64/libnvcuvid.so.1"});
  find(cuvid, "cuvidCreateDecoder", &f.create), find(cuvid, "cuvidDestroyDecoder", &f.destroy);
  find(cuvid, "cuvidDecodePicture", &f.decode), find(cuvid, "cuvidMapVideoFrame64", &f.map);
  find(cuvid, "cuvidUnmapVideoFrame64", &f.unmap), find(cuvid, "cuvidCreateVideoParser", &f.create_parser);
  find(cuvid, "cuvidParseVideoData", &f.parse), find(cuvid, "cuvidDestroyVideoParser", &f.destroy_parser);
  int (*init)(unsigned), (*retain)(void **, int);
  find(cuda, "cuInit", &init), find(cuda, "cuDevicePrimaryCtxRetain", &retain);
  find(cuda, "cuCtxSetCurrent", &set_current);
  check(init(0), "cuInit");
  check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  const int n = atoi(argv[2]);
  std::vector<Session> sessions((size_t)n);
  std::vector<std::thread> threads;
  for (Session &s : sessions) threads.emplace_back([&] { s.run(codec, packets); });
  // Sessions take a while to make; all have to have decoded something before time counts.
  while (n_frames < 60 * n) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  const auto begin = std::chrono::steady_clock::now();
  const int64_t before = n_frames;
  std::this_thread::sleep_for(std::chrono::duration<double>(atof(argv[1])));
  const int64_t after = n_frames;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  is_over = true;
  for (std::thread &t : threads) t.join();
  printf("%.1f\n", (double)(after - before) / seconds);
}

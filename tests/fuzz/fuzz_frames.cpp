// SPDX-License-Identifier: Apache-2.0
// Damages pictures and videos, and lets the parsers loose on them that readers.sequence and the readers of videos have,
// under AddressSanitizer. Built and run by fuzz_read.py.
//
//   fuzz_frames sequence|video_clip LIMIT SEED FILE...
#include <map>
#include <string>

#include "one_sample.h"
#include "read/sequence.h"
#include "read/video_clip.h"
#include "video/clip.h"

extern "C" {
int sequence(Sample *sample, const void *args, char *error);
int video_clip(Sample *sample, const void *args, char *error);
}

// Objects of URLs are left out of this program.
std::shared_ptr<Object> open_remote(const char *, Storage::Way) { fail("URLs are not read here"); }

namespace {

constexpr int64_t kMostPixels = 1 << 16;

// A sequence of up to three frames: the damaged file, and what the last good ones were.
bool try_sequence(const File &f, Random &r) {
  static std::vector<File> good;
  const uint64_t n = 1 + below(r, 3), at = below(r, n);
  File all;
  std::vector<Span> spans;
  for (uint64_t i = 0; i < n; i++) {
    // Mostly itself again, so that there are sequences whose frames have one size.
    const File &frame = i == at || good.empty() || r() % 4 ? f : good[below(r, good.size())];
    spans.push_back({(int64_t)all.size(), (int64_t)frame.size()});
    all.insert(all.end(), frame.begin(), frame.end());
  }
  const SequenceArgs a{kMostPixels, (int32_t)below(r, 5)};
  const bool ok = parse(sequence, &a, all, spans, 1);
  if (ok && good.size() < 64) good.push_back(f);
  return ok;
}

// The index is that of the file as it was; then the file is damaged, and read for the clip.
bool try_video_clip(const File &f, Random &r) {
  VideoFiles files;
  try {
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[f.size()]);
    memcpy(exact.get(), f.data(), f.size());
    files.index.push_back(read_video_index(Bytes{exact.get(), (int64_t)f.size()}));
  } catch (const std::exception &) {
    return false;
  }
  files.errors.emplace_back();
  const VideoIndex &index = files.index[0];
  if (index.shown.empty()) return false;
  int32_t frames[6];
  const int64_t n = 1 + (int64_t)below(r, 5);
  for (int64_t i = 0; i < 6; i++) frames[i] = i < n ? (int32_t)below(r, index.shown.size()) : -1;
  int64_t begin, end;
  span_of_clip(index, frames, n, &begin, &end);
  const File now = r() % 2 ? mutate({f}, r) : f;
  // The reader reads spans that lie in the file, and refuses the others; of some the parser gets less than they hold.
  begin = std::min(begin, (int64_t)now.size()), end = std::min(end, (int64_t)now.size());
  if (r() % 4 == 0) end = begin + (int64_t)below(r, end - begin + 1);
  const int64_t file = 0;
  const VideoClipArgs a{(int64_t)(intptr_t)&files, &file, &begin, frames, 6};
  return parse(video_clip, &a, now, {{begin, end - begin}}, 1);
}

}  // namespace

int main(int argc, char **argv) {
  const std::string format = argc > 1 ? argv[1] : "";
  if (format != "sequence" && format != "video_clip") return fprintf(stderr, "no format %s\n", format.c_str()), 2;
  int64_t inputs = 0, parsed = 0;
  const int status = fuzz(argc, argv, [&](const File &f, Random &r) {
    inputs++, parsed += format == "sequence" ? try_sequence(f, r) : try_video_clip(f, r);
  });
  printf("%s: %lld inputs, %lld of them parsed\n", format.c_str(), (long long)inputs, (long long)parsed);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// The videos of a data set: their indices, read from disk when a pipeline is built.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "core/kernel.h"
#include "read/remote.h"
#include "video/clip.h"

namespace {

VideoIndex read_file(const char *path) {
  const auto object = open_object(path, Storage::kOnce);
  return read_video_index(Source{object->length(), [&](int64_t offset, int64_t length, void *to) {
                                   if (object->read(offset, length, (char *)to) < length)
                                     fail("the file was cut short while it was read");
                                 }});
}

}  // namespace

// Reads the indices of n files, whose paths are `root` and the names in `text` (from begins[i] on, each ending in a
// zero byte; absolute ones stand alone). Frames, height and width of each go to `info` (n x 3; 0 frames: it can't be
// read, and `errors` says why). Returns what video_files_close takes.
EXPORT void *video_files_open(const char *root, const char *text, const int64_t *begins, int64_t n, int32_t n_threads,
                              int64_t *info, char *errors) {
  auto files = std::make_unique<VideoFiles>();
  files->index.resize((size_t)n), files->errors.resize((size_t)n);
  std::atomic<int64_t> next{0};
  RemoteStorage *const remote = RemoteStorage::selected;
  const auto work = [&]() {
    RemoteStorage::selected = remote;
    for (int64_t i; (i = next++) < n;) {
      const char *name = text + begins[i];
      try {
        const std::string path = *name == '/' || is_url(name) ? name : std::string(root) + name;
        VideoIndex &index = files->index[(size_t)i];
        index = read_file(path.c_str());
        check_extent("video", index.height, index.width);
        if (index.shown.empty()) fail("the video has no frames");
        info[3 * i] = (int64_t)index.shown.size(), info[3 * i + 1] = index.height, info[3 * i + 2] = index.width;
      } catch (const std::exception &e) {
        files->errors[(size_t)i] = e.what();
        snprintf(errors + i * kErrorSize, kErrorSize, "%s", e.what());
      }
    }
  };
  std::vector<std::thread> threads;
  for (int32_t i = 1; i < n_threads; i++) threads.emplace_back(work);
  work();
  for (std::thread &t : threads) t.join();
  return files.release();
}
EXPORT_LONG(video_files_open)

EXPORT void video_files_close(VideoFiles *files) { delete files; }
EXPORT_LONG(video_files_close)

// When the frames of the files from `first` to `end` (exclusive) are shown, in seconds, one file behind the other.
EXPORT void video_times(const VideoFiles *files, int64_t first, int64_t end, double *times) {
  for (int64_t file = first; file < end; file++) {
    const VideoIndex &index = files->index[(size_t)file];
    if (!files->errors[(size_t)file].empty()) continue;
    for (const int64_t time : index.times) *times++ = (double)time / (double)index.timescale;
  }
}
EXPORT_LONG(video_times)

// The bytes that clips need: frames[i * count ...] of the file with number file[i]; -1 stands for no frame.
EXPORT void video_spans(const VideoFiles *files, const int64_t *file, const int32_t *frames, int64_t n, int64_t count,
                        int64_t *offset, int64_t *length) {
  std::vector<int32_t> wanted;
  for (int64_t i = 0; i < n; i++) {
    wanted.clear();
    for (int64_t k = 0; k < count; k++)
      if (frames[i * count + k] >= 0) wanted.push_back(frames[i * count + k]);
    int64_t end = 0;
    offset[i] = length[i] = 0;
    if (wanted.empty()) continue;
    span_of_clip(files->index[(size_t)file[i]], wanted.data(), (int64_t)wanted.size(), offset + i, &end);
    length[i] = end - offset[i];
  }
}
EXPORT_LONG(video_spans)

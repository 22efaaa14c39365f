// SPDX-License-Identifier: Apache-2.0
// The videos of a data set: their indices, read from disk when a pipeline is built.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "core/kernel.h"
#include "read/remote.h"
#include "video/clip.h"
#include "video/packed_index.h"

namespace {

VideoIndex read_file(const char *path) {
  const auto object = open_object(path, Storage::kOnce);
  return read_video_index(Source{object->length(), [&](int64_t offset, int64_t length, void *to) {
                                   if (object->read(offset, length, (char *)to) < length)
                                     fail("the file was cut short while it was read");
                                 }});
}

}  // namespace

namespace {

void check(const VideoIndex &index) {
  check_extent("video", index.height, index.width);
  if (index.shown.empty()) fail("the video has no frames");
}

// Reports a file to Python: frames, height and width; 0 frames and the reason if it can't be read.
void tell(const VideoFiles &files, int64_t i, int64_t *info, char *errors) {
  const VideoIndex &index = files.index[(size_t)i];
  const std::string &error = files.errors[(size_t)i];
  info[3 * i] = error.empty() ? (int64_t)index.shown.size() : 0;
  info[3 * i + 1] = index.height, info[3 * i + 2] = index.width;
  snprintf(errors + i * kErrorSize, kErrorSize, "%s", error.c_str());
}

}  // namespace

// Creates an empty list of n files; freed by video_files_close.
EXPORT VideoFiles *video_files_open(int64_t n) {
  auto files = std::make_unique<VideoFiles>();
  files->index.resize((size_t)n), files->errors.resize((size_t)n);
  return files.release();
}
EXPORT_LONG(video_files_open)

// Reads the indices of files [first, end), whose paths are `root` and the names in `text` (from begins[i] on, each
// zero-terminated; absolute ones stand alone). Writes frames, height and width of each to `info` (n x 3; 0 frames if it
// can't be read, with the reason in `errors`).
EXPORT void video_files_scan(VideoFiles *files, const char *root, const char *text, const int64_t *begins,
                             int64_t first, int64_t end, int32_t n_threads, int64_t *info, char *errors) {
  std::atomic<int64_t> next{first};
  RemoteStorage *const remote = RemoteStorage::selected;
  const auto work = [&]() {
    RemoteStorage::selected = remote;
    for (int64_t i; (i = next++) < end;) {
      const char *name = text + begins[i];
      try {
        const std::string path = *name == '/' || is_url(name) ? name : std::string(root) + name;
        files->index[(size_t)i] = read_file(path.c_str());
        check(files->index[(size_t)i]);
      } catch (const std::exception &e) {
        files->errors[(size_t)i] = e.what();
      }
      tell(*files, i, info, errors);
    }
  };
  std::vector<std::thread> threads;
  for (int32_t i = 1; i < n_threads; i++) threads.emplace_back(work);
  work();
  for (std::thread &t : threads) t.join();
}
EXPORT_LONG(video_files_scan)

// Serializes all that is known of the files; returns the size. `to` may be null to get the size first.
EXPORT int64_t video_files_pack(const VideoFiles *files, uint8_t *to) {
  int64_t at = 0;
  for (size_t i = 0; i < files->index.size(); i++) {
    const VideoIndex nothing;
    const std::string &error = files->errors[i];
    const VideoIndex &index = error.empty() ? files->index[i] : nothing;
    const int64_t n_error = (int64_t)error.size(), size = packed_size(index);
    if (to) {
      memcpy(to + at, &n_error, sizeof n_error);
      memcpy(to + at + sizeof n_error, error.data(), error.size());
      pack_index(index, to + at + sizeof n_error + n_error);
    }
    at += (int64_t)sizeof n_error + n_error + size;
  }
  return at;
}
EXPORT_LONG(video_files_pack)

// Restores the result of video_files_pack; returns whether it fits `files`.
EXPORT int32_t video_files_unpack(VideoFiles *files, const uint8_t *data, int64_t size, int64_t *info, char *errors) {
  try {
    const Bytes bytes{data, size};
    int64_t at = 0;
    for (size_t i = 0; i < files->index.size(); i++) {
      int64_t n_error = 0;
      memcpy(&n_error, bytes.need(at, sizeof n_error), sizeof n_error), at += sizeof n_error;
      const Bytes error = bytes.part(at, n_error);
      files->errors[i].assign((const char *)error.data, (size_t)error.size), at += n_error;
      files->index[i] = unpack_index(bytes, &at);
      if (n_error == 0) check(files->index[i]);
      tell(*files, (int64_t)i, info, errors);
    }
    return at == size;
  } catch (const std::exception &) {
    return false;
  }
}
EXPORT_LONG(video_files_unpack)

EXPORT void video_files_close(VideoFiles *files) { delete files; }
EXPORT_LONG(video_files_close)

// Presentation times in seconds of the frames of files [first, end), one file after the other.
EXPORT void video_times(const VideoFiles *files, int64_t first, int64_t end, double *times) {
  for (int64_t file = first; file < end; file++) {
    const VideoIndex &index = files->index[(size_t)file];
    if (!files->errors[(size_t)file].empty()) continue;
    for (const int64_t time : index.times) *times++ = (double)time / (double)index.timescale;
  }
}
EXPORT_LONG(video_times)

// The file spans that clips need: frames[i * count ...] of file number file[i]; -1 stands for no frame.
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

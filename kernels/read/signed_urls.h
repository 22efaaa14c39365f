// SPDX-License-Identifier: Apache-2.0
// Signed URLs of objects in buckets, or URLs with a token in a line behind them: with one, our own client reads an
// object without the store's client. Python threads make them (src/penstock/core/signed_urls.py), all that are wanted
// at the time in one call.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

class SignedUrls {
 public:
  // `ask` is called when URLs are wanted and none were; a Python thread must then call `take_wanted` and `answer`.
  explicit SignedUrls(std::function<void()> ask) : ask_(std::move(ask)) {}

  void want(const std::vector<std::string> &names);  // they will be read soon
  // The URL of an object, "" if it has none: the store's own client must request it. Waits for it, until
  // `is_unwanted(of)`, unless `now`.
  std::string find(const std::string &name, bool now, bool (*is_unwanted)(const void *) = nullptr,
                   const void *of = nullptr);
  // The store's own client could read an object and ours could not: for a while all of its bucket is left to that.
  void leave_bucket(const std::string &name);

  std::string take_wanted();  // their names, each null-terminated
  // `urls`: as many, each null-terminated; "" for those that have none. After `used_for_s` they are asked for again.
  void answer(const std::string &names, const char *urls, double used_for_s);

 private:
  struct Url {
    std::string text;      // "" if it can't be signed
    int64_t until_ns = 0;  // 0 as long as it is wanted
  };
  Url *at(const std::string &name);
  void want_one(const std::string &name);
  bool is_left(const std::string &name) const;
  void add(const std::string &name, Url url);
  void leave(const std::string &name);

  const std::function<void()> ask_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable answered_;
  std::string wanted_;
  bool asked_ = false;
  // The most recently used ones, and those that were before: the objects may be far more than there is memory for.
  std::unordered_map<std::string, Url> urls_, older_;
  std::unordered_map<std::string, int64_t> left_;  // buckets, and until when
};

// SPDX-License-Identifier: Apache-2.0
#include "read/signed_urls.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "read/waiting.h"

static constexpr int64_t kSecond = 1000000000;
static constexpr int64_t kLeftFor = 60 * kSecond;
static constexpr size_t kMost = 8192;  // in each of the two maps

// With the slash behind it.
static std::string bucket(const std::string &name) { return name.substr(0, name.find('/', name.find("://") + 3) + 1); }

// The methods below require mutex_.

bool SignedUrls::is_left(const std::string &name) const {
  if (left_.empty()) return false;
  const auto found = left_.find(bucket(name));
  return found != left_.end() && now_ns() < found->second;
}

void SignedUrls::add(const std::string &name, Url url) {
  if (urls_.size() >= kMost) older_ = std::move(urls_), urls_.clear();
  urls_[name] = std::move(url);
}

// The entry of a name; null if it has none that can be used.
SignedUrls::Url *SignedUrls::at(const std::string &name) {
  auto found = urls_.find(name);
  if (found == urls_.end()) {
    const auto older = older_.find(name);
    if (older == older_.end()) return nullptr;
    Url url = std::move(older->second);
    older_.erase(older);
    add(name, std::move(url));
    found = urls_.find(name);
  }
  const Url &url = found->second;
  return !url.until_ns || now_ns() < url.until_ns ? &found->second : nullptr;
}

void SignedUrls::want_one(const std::string &name) {
  if (at(name)) return;
  add(name, {});
  wanted_.append(name).push_back('\0');
}

// Their URLs are dropped, as the credentials by which they were signed may have expired.
void SignedUrls::leave(const std::string &name) {
  const std::string begin = bucket(name);
  left_[begin] = now_ns() + kLeftFor;
  for (auto *urls : {&urls_, &older_})
    for (auto url = urls->begin(); url != urls->end();)
      url = url->first.compare(0, begin.size(), begin) ? std::next(url) : urls->erase(url);
}

// The others do not.

void SignedUrls::want(const std::vector<std::string> &names) {
  bool must_ask;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string &name : names)
      if (!is_left(name)) want_one(name);
    must_ask = !asked_ && !wanted_.empty();
    asked_ |= must_ask;
  }
  if (!must_ask) return;
  try {
    ask_();
  } catch (...) {
    std::lock_guard<std::mutex> lock(mutex_);
    asked_ = false;
    throw;
  }
}

std::string SignedUrls::find(const std::string &name, bool now, bool (*is_unwanted)(const void *), const void *of) {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (is_left(name)) return "";
      const Url *url = at(name);
      if (url && url->until_ns) return url->text;
      if (now) return "";
      if (url) {
        answered_.wait_for(lock, std::chrono::nanoseconds(kLookNs));
        if (is_unwanted(of)) return "";
        continue;
      }
    }
    want({name});
  }
}

void SignedUrls::leave_bucket(const std::string &name) {
  std::lock_guard<std::mutex> lock(mutex_);
  leave(name);
}

std::string SignedUrls::take_wanted() {
  std::lock_guard<std::mutex> lock(mutex_);
  asked_ = false;
  return std::exchange(wanted_, {});
}

void SignedUrls::answer(const std::string &names, const char *urls, double used_for_s) {
  const int64_t until = now_ns() + (int64_t)(used_for_s * kSecond);
  std::lock_guard<std::mutex> lock(mutex_);
  for (const char *name = names.data(), *end = name + names.size(); name < end; name += strlen(name) + 1) {
    add(name, {urls, until});
    urls += strlen(urls) + 1;
  }
  answered_.notify_all();
}

// SPDX-License-Identifier: Apache-2.0
// Requests by plain HTTP/1.1 over connections that are kept: the quick way for http:// URLs. What is not quite simple
// (redirects, other encodings, refusals that last) it leaves to the general client, which knows all of that.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "read/remote_queue.h"

class HttpClient {
 public:
  explicit HttpClient(int64_t read_ns) : read_ns_(read_ns) {}
  ~HttpClient();
  // Carries out the request: its state is then kDone, or kFailed if that may pass. False: it is for the general client.
  // Gives up with an exception when `is_unwanted()`.
  bool carry_out(RemoteRequest &request, bool (*is_unwanted)(const void *), const void *of);

 private:
  struct Url {
    std::string host, port, path;
  };
  class Exchange;
  static bool parse(const std::string &name, Url *url);
  int take(const Url &url);  // a kept connection; -1: there is none
  void keep(const Url &url, int fd);

  const int64_t read_ns_;  // the longest silence
  std::mutex mutex_;
  std::map<std::string, std::vector<int>> kept_;  // connections by host and port
};

// SPDX-License-Identifier: Apache-2.0
// Requests by plain HTTP/1.1 over persistent connections: the fast path for http:// URLs. Redirects, encoded bodies and
// permanent errors are left to the general client.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "read/http_exchange.h"

class HttpClient {
 public:
  explicit HttpClient(const RemoteLimits &limits) : limits_(limits) {}
  ~HttpClient();
  // Carries out the request: its state becomes kDone, or kFailed if it can be retried. Returns false if the general
  // client must do it. Throws once `is_unwanted(of)`. Increments `hedged` for each second connection tried.
  bool carry_out(RemoteRequest &request, bool (*is_unwanted)(const void *), const void *of, int *hedged);
  // Sends a request that this thread will soon carry out, if there is an idle kept connection. Returns whether it was
  // sent.
  bool ask_ahead(const char *name, int64_t offset, int64_t length);
  void drop_asked();  // cancels the requests that this thread sent ahead and did not carry out

 private:
  struct Connection {
    int fd;       // -1 if there is none
    size_t head;  // size of the last answer's head, usually that of the next one too
  };
  struct Asked {
    HttpClient *client;
    std::string name;
    int64_t offset, length;
    Connection connection;
    int64_t sent_ns;
  };
  static thread_local std::vector<Asked> asked_;  // sent ahead
  bool was_asked(const RemoteRequest &request, Asked *found);
  static bool parse(const std::string &name, HttpUrl *url);
  bool begin(HttpExchange &exchange, const RemoteRequest &request, bool may_be_kept);
  void race(HttpExchange &first, HttpExchange &second);
  Connection take(const HttpUrl &url);  // an idle one
  void keep(const HttpUrl &url, Connection connection);

  const RemoteLimits limits_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Connection>> kept_;  // idle, by server
};

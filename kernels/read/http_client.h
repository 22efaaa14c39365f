// SPDX-License-Identifier: Apache-2.0
// Requests by HTTP/1.1 over persistent connections: the fast path. Redirects, encoded bodies and permanent errors are
// left to the general client, and so is https:// where there is no OpenSSL or it does not trust the server.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "read/http_exchange.h"

class HttpClient {
 public:
  explicit HttpClient(const RemoteLimits &limits) : limits_(limits) {}
  // Carries out the request, at this URL: its state becomes kDone, or kFailed if it can be retried. Returns false if
  // the general client must do it. Throws once `is_unwanted(of)`. Increments `hedged` for each second connection tried.
  bool carry_out(RemoteRequest &request, const std::string &url, bool (*is_unwanted)(const void *), const void *of,
                 int *hedged);
  // Sends a request that this thread will soon carry out, if there is an idle kept connection. Returns whether it was
  // sent.
  bool ask_ahead(const std::string &url, int64_t offset, int64_t length);
  void drop_asked();  // cancels the requests that this thread sent ahead and did not carry out

 private:
  struct Connection {
    HttpSocket socket;
    size_t head;  // size of the last answer's head, usually that of the next one too
  };
  struct Asked {
    HttpClient *client;
    std::string url;
    int64_t offset, length;
    Connection connection;
    int64_t sent_ns;
  };
  static thread_local std::vector<Asked> asked_;  // sent ahead
  bool was_asked(const RemoteRequest &request, const std::string &url, Asked *found);
  bool parse(const std::string &with_token, HttpUrl *url);
  const Tls *tls_of(const std::string &server);
  bool begin(HttpExchange &exchange, const RemoteRequest &request, const std::string &url, bool may_be_kept);
  void race(HttpExchange &first, HttpExchange &second);
  Connection take(const HttpUrl &url);  // an idle one
  void keep(const HttpUrl &url, Connection connection);

  const RemoteLimits limits_;
  std::mutex mutex_;
  std::unique_ptr<Tls> tls_;                             // made when it is first needed; outlives the connections
  std::map<std::string, std::vector<Connection>> kept_;  // idle, by server
  std::set<std::string> without_tls_;                    // servers with which TLS failed
};

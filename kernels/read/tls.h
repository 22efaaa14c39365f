// SPDX-License-Identifier: Apache-2.0
// TLS by the OpenSSL library on this machine: the one that Python's ssl module has loaded, or else the system's. It is
// opened when it is first needed, so that the package carries none and its security fixes come with the machine's.
#pragma once
#include <sys/types.h>
#include <sys/uio.h>

#include <string>

// What sessions share: the library and the certificates that this machine trusts.
class Tls {
 public:
  Tls();
  ~Tls();
  Tls(const Tls &) = delete;
  bool is_available() const { return context_; }

 private:
  friend class TlsSession;
  void *context_ = nullptr;  // SSL_CTX; null if TLS can't be used
};

// The client's side of TLS on a connected, blocking socket, which must outlive it. Verifies the server's certificate.
class TlsSession {
 public:
  TlsSession(const Tls &tls, int fd, const std::string &host);  // throws std::bad_alloc
  ~TlsSession();
  TlsSession(const TlsSession &) = delete;

  enum Handshake { kDone, kAgain, kLost, kRefused };
  // kAgain: the socket's timeout is over. kRefused: no TLS is possible with this server, or its certificate is wrong.
  Handshake shake_hands();
  // As `send` and `recvmsg` of a socket: they return the number of bytes, 0 at the end, or -1 with errno.
  ssize_t send(const char *data, size_t size);
  ssize_t receive(const iovec *parts, size_t n, int flags);
  // Whether bytes were received that `receive` has not returned.
  bool has_buffered() const;

 private:
  friend struct OpenSsl;
  static int read_socket(void *bio, char *data, int size);
  static int write_socket(void *bio, const char *data, int size);
  static long control(void *bio, int command, long number, void *pointer);
  ssize_t failed(int result);

  const int fd_;
  int flags_ = 0;  // with which the socket is read
  void *ssl_;
};

// SPDX-License-Identifier: Apache-2.0
// Sends files, or ranges of them, over HTTP, each answer a fixed time after its request: slow_server FOLDER PORT
// MILLISECONDS. It takes as little as it can of the processors that what is measured needs, too: one thread for any
// number of kept connections, which are told of once only; files stay open; and an answer is given away in one piece.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 8192, REQUEST = 4096, FILES = 8192, SEND_BUFFER = 4 << 20 };

struct connection {
  char request[REQUEST + 1];
  int got, is_waiting;
  const struct file *file;
  char head[512];
  int head_size, head_sent;
  off_t next, end;
  double due;
  int later;  // the connection whose answer is due next
};
static struct connection all[CONNECTIONS];

struct file {
  char *path;  // of the URL; null where there is none
  int fd;      // -1: it is not there
  struct stat info;
};
static struct file files[FILES];           // by a hash of the path
static int first_due = -1, last_due = -1;  // the delay is the same for all, so that they are in order
static double delay;
static const char *folder;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void drop(int fd) {
  struct connection *c = &all[fd];
  c->head_size = c->head_sent = 0, c->next = c->end = 0;
  if (c->is_waiting)
    c->got = -1;  // it is closed when it is due
  else
    close(fd);
}

static const struct file *opened(const char *path) {
  unsigned at = 0;
  for (const char *c = path; *c; c++) at = at * 31 + (unsigned char)*c;
  for (at %= FILES; files[at].path; at = (at + 1) % FILES)
    if (!strcmp(files[at].path, path)) return &files[at];
  struct file *f = &files[at];
  char name[4096];
  snprintf(name, sizeof name, "%s%s", folder, path);
  f->path = strdup(path), f->fd = strstr(path, "..") ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (f->fd >= 0 && (fstat(f->fd, &f->info) || !S_ISREG(f->info.st_mode))) close(f->fd), f->fd = -1;
  return f;
}

static void answer(int fd) {
  struct connection *c = &all[fd];
  char method[8], path[2048];
  if (sscanf(c->request, "%7s %2047s", method, path) != 2) return drop(fd);
  c->file = opened(path);
  c->got = c->head_sent = 0;
  if (c->file->fd < 0) {
    c->next = c->end = 0;
    c->head_size = snprintf(c->head, sizeof c->head, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    return;
  }
  const struct stat *const info = &c->file->info;
  const char *range = strcasestr(c->request, "\r\nRange: bytes=");
  long long begin = 0, last = info->st_size - 1;
  if (range && sscanf(range + 15, "%lld-%lld", &begin, &last) < 1) range = NULL;
  if (last >= info->st_size) last = info->st_size - 1;
  char extra[128] = "";
  if (range)
    snprintf(extra, sizeof extra, "Content-Range: bytes %lld-%lld/%lld\r\n", begin, last, (long long)info->st_size);
  c->head_size = snprintf(c->head, sizeof c->head,
                          "HTTP/1.1 %s\r\nContent-Length: %lld\r\nETag: \"%llx-%llx\"\r\nAccept-Ranges: bytes\r\n"
                          "Last-Modified: Sun, 22 Nov 2026 10:00:00 GMT\r\n%s\r\n",
                          range ? "206 Partial Content" : "200 OK", last + 1 - begin, (long long)info->st_mtime,
                          (long long)info->st_size, extra);
  c->next = begin, c->end = strcmp(method, "HEAD") ? last + 1 : begin;
}

static void go_on(int fd) {
  struct connection *c = &all[fd];
  while (c->head_sent < c->head_size) {
    const ssize_t n = send(fd, c->head + c->head_sent, c->head_size - c->head_sent, c->next < c->end ? MSG_MORE : 0);
    if (n < 0 && errno != EAGAIN) return drop(fd);
    if (n < 0) return;
    c->head_sent += (int)n;
  }
  while (c->next < c->end) {
    const ssize_t n = sendfile(fd, c->file->fd, &c->next, c->end - c->next);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return drop(fd);
    if (n < 0) return;
  }
}

static void receive(int fd) {
  struct connection *c = &all[fd];
  const ssize_t n = recv(fd, c->request + c->got, REQUEST - c->got, 0);
  if (n <= 0) {
    if (n == 0 || errno != EAGAIN) drop(fd);
    return;
  }
  c->got += (int)n;
  c->request[c->got] = 0;
  if (!strstr(c->request, "\r\n\r\n")) {
    if (c->got == REQUEST) drop(fd);
    return;
  }
  c->is_waiting = 1, c->due = now() + delay, c->later = -1;
  if (last_due >= 0)
    all[last_due].later = fd;
  else
    first_due = fd;
  last_due = fd;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  folder = argv[1], delay = atof(argv[3]) / 1e3;
  signal(SIGPIPE, SIG_IGN);
  struct rlimit open_files;
  getrlimit(RLIMIT_NOFILE, &open_files);
  open_files.rlim_cur = open_files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &open_files);
  const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, room = SEND_BUFFER;
  const int epoll = epoll_create1(0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1024)) return perror("bind"), 1;
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    const double wait = first_due < 0 ? -1e-3 : all[first_due].due - now();
    const struct timespec pause = {0, wait > 0 ? (long)(wait * 1e9) : 0};
    const int n = epoll_pwait2(epoll, events, 256, first_due < 0 ? NULL : &pause, NULL);
    for (int i = 0; i < n; i++) {
      const int fd = events[i].data.fd;
      if (fd == listener) {
        const int s = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (s < 0) continue;
        if (s >= CONNECTIONS) {
          close(s);
          continue;
        }
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(s, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        memset(&all[s], 0, sizeof all[s]);
        event = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = s};
        epoll_ctl(epoll, EPOLL_CTL_ADD, s, &event);
      } else if (all[fd].is_waiting) {  // it hangs up while its answer is due
        drop(fd);
      } else {
        if (events[i].events & EPOLLOUT) go_on(fd);
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(fd);
      }
    }
    while (first_due >= 0 && all[first_due].due <= now()) {
      const int fd = first_due;
      first_due = all[fd].later;
      if (first_due < 0) last_due = -1;
      all[fd].is_waiting = 0;
      if (all[fd].got < 0) {
        close(fd);
        continue;
      }
      answer(fd);
      go_on(fd);
    }
  }
}

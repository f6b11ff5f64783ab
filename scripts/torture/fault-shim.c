/*
 * A disk that fails. Loaded with LD_PRELOAD: the n-th write or flush of the database's files, and `count - 1` after it,
 * does not succeed.
 *
 *   TORTURE_FILE     the database; its -wal and its -journal are watched too
 *   TORTURE_FAULT    write (EIO) | short (half of it is written, then EIO) | sync (EIO)
 *   TORTURE_AT       n, from 1; 0 fails nothing and only counts
 *   TORTURE_ONLY     checkpoint: only the database itself, which is written when the WAL is checkpointed
 *                    heart: only threads other than the first; else everything counts
 *   TORTURE_COUNT    how many in a row fail
 *   TORTURE_REPORT   a file that gets a line for each fault, and the totals when the process ends
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static const char *database;
static const char *report;
static const char *fault = "none";
static const char *only = "";
static long first, last;
static atomic_long writes, syncs;
/* The rest of a short write, which is what fails. */
static _Thread_local int torn;

static long number(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : atol(text);
}

__attribute__((constructor)) static void begin(void) {
  real_write = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
  real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  database = getenv("TORTURE_FILE");
  report = getenv("TORTURE_REPORT");
  if (getenv("TORTURE_FAULT") != NULL) fault = getenv("TORTURE_FAULT");
  if (getenv("TORTURE_ONLY") != NULL) only = getenv("TORTURE_ONLY");
  first = number("TORTURE_AT");
  last = first + number("TORTURE_COUNT") - 1;
}

static void tell(const char *line) {
  if (report == NULL) return;
  int out = open(report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) return;
  if (real_write(out, line, strlen(line)) < 0) abort(); /* A fault that is not on record is a run that is not understood. */
  close(out);
}

__attribute__((destructor)) static void end(void) {
  char line[64];
  snprintf(line, sizeof line, "total %ld %ld\n", atomic_load(&writes), atomic_load(&syncs));
  if (database != NULL) tell(line);
}

static int is_main(void) { return syscall(SYS_gettid) == getpid(); }

/* The ending of a watched file ("" for the database itself), or NULL. */
static const char *watched(int fd, char *path) {
  char link[64];
  if (database == NULL) return NULL;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return NULL;
  path[length] = '\0';
  size_t base = strlen(database);
  if (strncmp(path, database, base) != 0) return NULL;
  const char *ending = path + base;
  if (strcmp(only, "checkpoint") == 0 && *ending != '\0') return NULL;
  if (strcmp(only, "heart") == 0 && is_main()) return NULL;
  if (*ending == '\0' || strcmp(ending, "-wal") == 0 || strcmp(ending, "-journal") == 0) return ending;
  return NULL;
}

static int is_due(atomic_long *counter) {
  long n = atomic_fetch_add(counter, 1) + 1;
  return first > 0 && n >= first && n <= last;
}

static void record(const char *what, const char *ending) {
  char line[96];
  const char *who = is_main() ? "main" : "thread";
  snprintf(line, sizeof line, "fault %s db%s %s\n", what, ending, who);
  tell(line);
}

/* How many bytes may be written: -1 fails at once. */
static ssize_t allowed(int fd, size_t size) {
  char path[PATH_MAX];
  int before = errno;
  const char *ending = watched(fd, path);
  errno = before;
  if (ending == NULL) return (ssize_t)size;
  if (torn) {
    torn = 0;
    errno = EIO;
    return -1;
  }
  if (strcmp(fault, "sync") == 0 || !is_due(&writes)) {
    if (strcmp(fault, "sync") == 0) atomic_fetch_add(&writes, 1);
    return (ssize_t)size;
  }
  record(fault, ending);
  if (strcmp(fault, "short") == 0 && size > 1) {
    torn = 1;
    return (ssize_t)(size / 2);
  }
  errno = EIO;
  return -1;
}

static int may_sync(int fd) {
  char path[PATH_MAX];
  const char *ending = watched(fd, path);
  if (ending == NULL) return 1;
  if (strcmp(fault, "sync") != 0) {
    atomic_fetch_add(&syncs, 1);
    return 1;
  }
  if (!is_due(&syncs)) return 1;
  record("sync", ending);
  errno = EIO;
  return 0;
}

ssize_t write(int fd, const void *bytes, size_t size) {
  ssize_t most = allowed(fd, size);
  return most < 0 ? -1 : real_write(fd, bytes, (size_t)most);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) {
  ssize_t most = allowed(fd, size);
  return most < 0 ? -1 : real_pwrite(fd, bytes, (size_t)most, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return pwrite64(fd, bytes, size, at); }

int fsync(int fd) { return may_sync(fd) ? real_fsync(fd) : -1; }

int fdatasync(int fd) { return may_sync(fd) ? real_fdatasync(fd) : -1; }

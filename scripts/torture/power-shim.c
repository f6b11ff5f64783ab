/*
 * A disk that loses what was not flushed. Loaded with LD_PRELOAD into every process that has the database open: whenever
 * one of them flushes a file of the database, that file is copied aside. When the power is "cut" (kill -9 of them all), the
 * supervisor replaces the files by the copies: exactly the flushed bytes survive.
 *
 *   TORTURE_FILE    the database; its -wal and its -journal are watched too
 *   TORTURE_ASIDE   the folder of the copies: <name>.<inode> has the bytes, entry.<name> says which inode has the name
 *   TORTURE_FORGET  0: no flush fails. n: this process's n-th flush of the WAL fails with EIO, and the pages that were dirty
 *                   are dropped as Linux drops them: they stay unchanged in memory, count as clean, and no later
 *                   flush writes them to the disk unless they are written again
 *
 * A name survives when its file or its folder was flushed, as it does on ext4, XFS and Btrfs. A file that is cut short or
 * removed is restored to its last flush: neither is durable by itself.
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
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
#define PAGE 4096

static const char *const ENDINGS[] = {"", "-wal", "-journal"};
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int forgets;
static long fails_at;
static atomic_long flushes;
static const char *database;
static const char *aside;
static char folder[PATH_MAX];

__attribute__((constructor)) static void begin(void) {
  real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
  database = getenv("TORTURE_FILE");
  forgets = getenv("TORTURE_FORGET") != NULL;
  fails_at = forgets ? atol(getenv("TORTURE_FORGET")) : 0;
  aside = getenv("TORTURE_ASIDE");
  if (database == NULL || aside == NULL) return;
  snprintf(folder, sizeof folder, "%s", database);
  *strrchr(folder, '/') = '\0';
}

/* A shim that cannot do its work must not look like one that does. */
static void give_up(const char *what) {
  fprintf(stderr, "power shim: %s: %s\n", what, strerror(errno));
  abort();
}

static void write_entry(const char *name, ino_t inode) {
  char path[PATH_MAX], fresh[PATH_MAX];
  snprintf(path, sizeof path, "%s/entry.%s", aside, name);
  snprintf(fresh, sizeof fresh, "%s/fresh.%s", aside, name);
  FILE *out = fopen(fresh, "w");
  if (out == NULL || fprintf(out, "%lu", (unsigned long)inode) < 0 || fclose(out) != 0) give_up("entry");
  if (rename(fresh, path) != 0) give_up("entry"); /* Whole or not at all, should the cut come now. */
}

static int open_aside(const char *kind, const char *name, ino_t inode, int flags) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s%s.%lu", aside, kind, name, (unsigned long)inode);
  return open(path, flags | O_CLOEXEC, 0600);
}

/* One byte a page: 1 when the page is dropped. */
static int is_forgotten(int marks, off_t page) {
  char mark = 0;
  return marks >= 0 && pread(marks, &mark, 1, page) == 1 && mark == 1;
}

/*
 * The bytes are read through the caller's own descriptor: opening and closing the database here would drop the POSIX locks of
 * the whole process. They are written in place, so that a cut half way leaves old and new bytes side by side, as a disk does
 * whose flush has not returned.
 */
static void keep_bytes(int fd, const char *name, const struct stat *file) {
  int copy = open_aside("", name, file->st_ino, O_WRONLY | O_CREAT);
  int marks = forgets ? open_aside("forgot.", name, file->st_ino, O_RDONLY) : -1;
  char *chunk = malloc(CHUNK);
  if (copy < 0 || chunk == NULL) give_up("copy");
  size_t step = marks < 0 ? CHUNK : PAGE;
  off_t at = 0;
  for (ssize_t got; (got = pread(fd, chunk, step, at)) != 0; at += got) {
    if (got < 0) give_up("copy");
    if (is_forgotten(marks, at / PAGE)) continue;
    if (real_pwrite(copy, chunk, (size_t)got, at) != got) give_up("copy");
  }
  if (ftruncate(copy, at) != 0) give_up("copy");
  free(chunk);
  close(copy);
  if (marks >= 0) close(marks);
  write_entry(name, file->st_ino);
}

/* The flush failed: what is not on the disk by now is dirty, and counts as clean from here on. */
static void forget_dirty(int fd, const char *name, const struct stat *file) {
  int copy = open_aside("", name, file->st_ino, O_RDONLY);
  int marks = open_aside("forgot.", name, file->st_ino, O_WRONLY | O_CREAT);
  if (marks < 0) give_up("forget");
  char now[PAGE], flushed[PAGE];
  ssize_t got;
  for (off_t at = 0; (got = pread(fd, now, PAGE, at)) > 0; at += got) {
    ssize_t had = copy < 0 ? 0 : pread(copy, flushed, PAGE, at);
    if (had >= got && memcmp(now, flushed, (size_t)got) == 0) continue;
    if (real_pwrite(marks, "\1", 1, at / PAGE) != 1) give_up("forget");
  }
  close(marks);
  if (copy >= 0) close(copy);
}

/* The folder was flushed: the names in it are as they are now. */
static void keep_names(void) {
  for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
    char path[PATH_MAX], entry[PATH_MAX];
    struct stat file;
    snprintf(path, sizeof path, "%s%s", database, ENDINGS[i]);
    const char *name = strrchr(path, '/') + 1;
    snprintf(entry, sizeof entry, "%s/entry.%s", aside, name);
    if (stat(path, &file) == 0) write_entry(name, file.st_ino);
    else unlink(entry);
  }
}

/* What a descriptor is: the path in `path`, and its ending as the result; "/" is the folder, NULL is another file. */
static const char *what_is(int fd, char *path) {
  char link[64];
  if (database == NULL || aside == NULL) return NULL;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return NULL;
  path[length] = '\0';
  if (strcmp(path, folder) == 0) return "/";
  size_t base = strlen(database);
  for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++)
    if (strncmp(path, database, base) == 0 && strcmp(path + base, ENDINGS[i]) == 0) return ENDINGS[i];
  return NULL;
}

/* One at a time, over all processes and threads: an older copy must not overwrite a newer one. */
static int take_turn(void) {
  char lock[PATH_MAX];
  snprintf(lock, sizeof lock, "%s/lock", aside);
  int turn = open(lock, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (turn < 0 || flock(turn, LOCK_EX) != 0) give_up("lock");
  return turn;
}

static int flush(int fd, int (*really)(int)) {
  char path[PATH_MAX];
  struct stat file;
  const char *what = what_is(fd, path);
  if (what == NULL) return really(fd);
  int fails = strcmp(what, "-wal") == 0 && atomic_fetch_add(&flushes, 1) + 1 == fails_at;
  int result = really(fd);
  if (result != 0 || fstat(fd, &file) != 0) return result;
  int turn = take_turn();
  if (fails) forget_dirty(fd, strrchr(path, '/') + 1, &file);
  else if (*what == '/') keep_names();
  else keep_bytes(fd, strrchr(path, '/') + 1, &file);
  close(turn);
  if (!fails) return 0;
  errno = EIO;
  return -1;
}

int fsync(int fd) { return flush(fd, real_fsync); }

int fdatasync(int fd) { return flush(fd, real_fdatasync); }

/* A page that is written again is completely dirty again, and will be flushed. */
ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) {
  ssize_t result = real_pwrite(fd, bytes, size, at);
  char path[PATH_MAX];
  struct stat file;
  const char *what = forgets && result > 0 ? what_is(fd, path) : NULL;
  if (what == NULL || *what == '/' || fstat(fd, &file) != 0) return result;
  int marks = open_aside("forgot.", strrchr(path, '/') + 1, file.st_ino, O_RDWR);
  if (marks < 0) return result; /* Nothing was forgotten. */
  int turn = take_turn();
  for (off_t page = at / PAGE; page <= (at + result - 1) / PAGE; page++)
    if (is_forgotten(marks, page) && real_pwrite(marks, "", 1, page) != 1) give_up("remember");
  close(turn);
  close(marks);
  return result;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) { return pwrite64(fd, bytes, size, at); }

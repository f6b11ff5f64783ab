/*
 * A disk that forgets what was not flushed. Loaded with LD_PRELOAD into every process that has the database open: whenever
 * one of them flushes a file of the database, that file is copied aside. When the power is "cut" (kill -9 of them all), the
 * supervisor puts the copies in the place of the files: exactly the flushed bytes survive.
 *
 *   TORTURE_FILE    the database; its -wal and its -journal are watched too
 *   TORTURE_ASIDE   the folder of the copies: <name>.<inode> has the bytes, entry.<name> says which inode has the name
 *
 * A name survives when its file or its folder was flushed, as it does on ext4, XFS and Btrfs. A file that is cut short or
 * removed comes back as it was at its last flush: neither is durable by itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (256 * 1024)

static const char *const ENDINGS[] = {"", "-wal", "-journal"};
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static const char *database;
static const char *aside;
static char folder[PATH_MAX];

__attribute__((constructor)) static void begin(void) {
  real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  database = getenv("TORTURE_FILE");
  aside = getenv("TORTURE_ASIDE");
  if (database == NULL || aside == NULL) return;
  snprintf(folder, sizeof folder, "%s", database);
  *strrchr(folder, '/') = '\0';
}

/* A shim that cannot keep its promise must not look like one that does. */
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

/*
 * The bytes are read through the caller's own descriptor: to open and close the database here would drop the POSIX locks of
 * the whole process. They are written in place, so that a cut half way leaves old and new bytes side by side, as a disk does
 * whose flush has not returned.
 */
static void keep_bytes(int fd, const char *name, const struct stat *file) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s.%lu", aside, name, (unsigned long)file->st_ino);
  int copy = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  char *chunk = malloc(CHUNK);
  if (copy < 0 || chunk == NULL) give_up("copy");
  off_t at = 0;
  for (ssize_t got; (got = pread(fd, chunk, CHUNK, at)) != 0; at += got)
    if (got < 0 || pwrite(copy, chunk, (size_t)got, at) != got) give_up("copy");
  if (ftruncate(copy, at) != 0) give_up("copy");
  free(chunk);
  close(copy);
  write_entry(name, file->st_ino);
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

static void keep(int fd) {
  if (database == NULL || aside == NULL) return;
  int before = errno;
  char link[64], path[PATH_MAX], lock[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = '\0';
  int is_folder = strcmp(path, folder) == 0, is_file = 0;
  for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
    size_t base = strlen(database);
    if (strncmp(path, database, base) == 0 && strcmp(path + base, ENDINGS[i]) == 0) is_file = 1;
  }
  if (!is_folder && !is_file) return;
  /* One copy at a time, over all processes and threads: an older copy must not overtake a newer one. */
  snprintf(lock, sizeof lock, "%s/lock", aside);
  int turn = open(lock, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (turn < 0 || flock(turn, LOCK_EX) != 0) give_up("lock");
  struct stat file;
  if (is_folder) keep_names();
  else if (fstat(fd, &file) == 0) keep_bytes(fd, strrchr(path, '/') + 1, &file);
  close(turn);
  errno = before;
}

int fsync(int fd) {
  int result = real_fsync(fd);
  if (result == 0) keep(fd);
  return result;
}

int fdatasync(int fd) {
  int result = real_fdatasync(fd);
  if (result == 0) keep(fd);
  return result;
}

// SPDX-License-Identifier: Apache-2.0
// A program in C that marks, for tests: one word of its command line after the other.
//   begin:NAME end:NAME phase:NAME phase step:SAMPLES metric:NAME=VALUE parameter:NAME=TEXT   what headroom.h has
//   sleep:MS   threads:COUNT (each marks 1000 steps)   burst:COUNT (steps)   fork (both go on; the parent waits at the end)
//   wait (for the child)   kill (dies of SIGKILL)   garbage, truncate (its own ring)   errno (must not change)
//   cost:PAIRS (prints ns for a begin and its end)   pid (prints it)
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/headroom.h"

static void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

static void* thousand_steps(void* unused) {
  for (int i = 0; i < 1000; ++i) headroom_step(1);
  return unused;
}

static void threads(int count) {
  pthread_t ids[64];
  if (count > 64) count = 64;
  for (int i = 0; i < count; ++i) pthread_create(&ids[i], NULL, thousand_steps, NULL);
  for (int i = 0; i < count; ++i) pthread_join(ids[i], NULL);
}

// What a program may do to its own ring while it is mapped, and survive.
static void spoil(int cut) {
  const char* directory = getenv("HEADROOM_MARKS");
  DIR* listing = directory != NULL ? opendir(directory) : NULL;
  char own[32];
  snprintf(own, sizeof own, "%d-", (int)getpid());
  for (const struct dirent* entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
    if (strncmp(entry->d_name, own, strlen(own)) != 0) continue;
    const int fd = openat(dirfd(listing), entry->d_name, O_RDWR);
    char garbage[4096];
    for (size_t i = 0; i < sizeof garbage; ++i) garbage[i] = (char)(i * 2654435761u >> 7);
    for (off_t at = 0; !cut && at < (off_t)1 << 20; at += (off_t)sizeof garbage)
      if (pwrite(fd, garbage, sizeof garbage, at + 48) < 0) break;  // behind the header
    if (cut && ftruncate(fd, 5000) != 0) perror("truncate");
    close(fd);
  }
  if (listing != NULL) closedir(listing);
}

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void print_cost(long pairs) {
  headroom_phase_begin("warm");
  headroom_phase_end("warm");
  const double before = now_ns();
  for (long i = 0; i < pairs; ++i) {
    headroom_phase_begin("forward");
    headroom_phase_end("forward");
  }
  printf("%.1f\n", (now_ns() - before) / (double)pairs);
}

static int is(const char* word, size_t length, const char* name) {
  return length == strlen(name) && strncmp(word, name, length) == 0;
}

static void headroom_pair(const char* text, int metric) {
  char name[256] = "";
  const char* equals = strchr(text, '=');
  if (equals == NULL) return;
  snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
  if (metric)
    headroom_metric(name, atof(equals + 1));
  else
    headroom_parameter(name, equals + 1);
}

static pid_t child = 0;

static int run(const char* word) {
  const char* colon = strchr(word, ':');
  const size_t length = colon != NULL ? (size_t)(colon - word) : strlen(word);
  const char* rest = colon != NULL ? colon + 1 : "";
  if (is(word, length, "begin")) headroom_phase_begin(rest);
  else if (is(word, length, "end")) headroom_phase_end(colon != NULL ? rest : NULL);
  else if (is(word, length, "phase")) headroom_phase(colon != NULL ? rest : NULL);
  else if (is(word, length, "step")) headroom_step(atof(rest));
  else if (is(word, length, "metric")) headroom_pair(rest, 1);
  else if (is(word, length, "parameter")) headroom_pair(rest, 0);
  else if (is(word, length, "sleep")) sleep_ms(atol(rest));
  else if (is(word, length, "threads")) threads(atoi(rest));
  else if (is(word, length, "burst")) for (long i = atol(rest); i > 0; --i) headroom_step(1);
  else if (is(word, length, "fork")) child = fork();
  else if (is(word, length, "wait")) { if (child > 0) waitpid(child, NULL, 0); }
  else if (is(word, length, "kill")) raise(SIGKILL);
  else if (is(word, length, "garbage")) spoil(0);
  else if (is(word, length, "truncate")) spoil(1);
  else if (is(word, length, "cost")) print_cost(atol(rest));
  else if (is(word, length, "pid")) { printf("%d\n", (int)getpid()); fflush(stdout); }
  else if (is(word, length, "errno")) { errno = 77; headroom_phase_begin("errno"); return errno == 77 ? 0 : 3; }
  else { fprintf(stderr, "what is %s?\n", word); return 2; }
  return 0;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const int code = run(argv[i]);
    if (code != 0) return code;
  }
  if (child > 0) waitpid(child, NULL, 0);
  return 0;
}

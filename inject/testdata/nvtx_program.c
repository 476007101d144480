// SPDX-License-Identifier: Apache-2.0
// A program that has NVTX compiled in, as far as a library behind NVTX_INJECTION64_PATH can tell: our own half of what
// inject/nvtx_abi.h describes, with declarations of its own. One word of its command line after the other:
//   push:NAME pushw:NAME pushx:NAME pushxw:NAME pushr:NAME pop    A, W, Ex with ASCII, wide and registered text
//   dpush:DOMAIN:NAME dpop:DOMAIN                                 DOMAIN: one letter
//   start:NAME end thread-end                                     ranges; the last one that was started
//   mark sleep:MS fork wait                                       marks are nobody's; both processes go on after fork
//   depth:N (the last push or pop must have given it)   loaded:N (1: a library was there and took it)   second (a second
//   copy of NVTX in the program)
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

typedef void (*any_function)(void);

struct attributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  union {
    uint64_t whole;
    double real;
  } payload;
  int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* wide;
    void* registered;
  } message;
};

// Slots as the library finds them: an address of each function pointer. [0] is none.
enum { CORE = 1, CORE2 = 5, CORE_SIZE = 16, CORE2_SIZE = 16 };
static any_function core[CORE_SIZE], core2[CORE2_SIZE];
static any_function* core_slots[CORE_SIZE + 1];
static any_function* core2_slots[CORE2_SIZE + 1];
static int loaded = -1;

static void before_init(void) {}  // what the pointers hold until a library puts its own there

static int module_functions(uint32_t module, any_function*** functions, unsigned* count) {
  if (module != CORE && module != CORE2) return 0;
  *functions = module == CORE ? core_slots : core2_slots;
  *count = module == CORE ? CORE_SIZE : CORE2_SIZE;
  return 1;
}

static struct {
  size_t struct_size;
  int (*module_functions)(uint32_t, any_function***, unsigned*);
} callbacks = {sizeof callbacks, module_functions};

static const void* export_table(uint32_t id) { return id == 1 ? &callbacks : NULL; }

static void init(void) {
  if (loaded >= 0) return;
  for (int i = 1; i < CORE_SIZE; ++i) core[i] = before_init, core_slots[i] = &core[i];
  for (int i = 1; i < CORE2_SIZE; ++i) core2[i] = before_init, core2_slots[i] = &core2[i];
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
  int (*entry)(const void* (*)(uint32_t)) = NULL;
  if (library != NULL) *(void**)&entry = dlsym(library, "InitializeInjectionNvtx2");
  loaded = entry != NULL && entry(export_table) != 0;
  if (!loaded && library != NULL) dlclose(library);
  for (int i = 1; i < CORE_SIZE; ++i)
    if (!loaded || core[i] == before_init) core[i] = NULL;
  for (int i = 1; i < CORE2_SIZE; ++i)
    if (!loaded || core2[i] == before_init) core2[i] = NULL;
}

#define CALL(table, slot, result, types, ...) \
  (init(), (table)[slot] != NULL ? ((result(*) types)(table)[slot])(__VA_ARGS__) : (result)0)

static void* domains[128];
static void* domain_of(char letter) {
  void** domain = &domains[letter & 127];
  if (*domain == NULL) *domain = CALL(core2, 12, void*, (const char*), "a domain");
  return *domain;
}

static struct attributes attributes_of(int32_t type) {
  struct attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.version = 3;
  attributes.size = sizeof attributes;
  attributes.message_type = type;
  return attributes;
}

static uint64_t range = 0;
static int level = -100;
static pid_t child = 0;

static void* end_range(void* unused) {
  init();
  if (core[7] != NULL) ((void (*)(uint64_t))core[7])(range);
  return unused;
}

static const wchar_t* widened(const char* text) {
  static wchar_t wide[256];
  size_t n = 0;
  for (; n < 250 && text[n] != '\0'; ++n) wide[n] = (wchar_t)(unsigned char)text[n];
  wide[n++] = 0x00fc;   // two bytes of UTF-8,
  wide[n++] = 0x1f600;  // and four
  wide[n] = 0;
  return wide;
}

static void push_with(int32_t type, const char* text) {
  struct attributes attributes = attributes_of(type);
  if (type == 1) attributes.message.ascii = text;
  if (type == 2) attributes.message.wide = widened(text);
  if (type == 3) attributes.message.registered = CALL(core2, 10, void*, (void*, const char*), NULL, text);
  level = CALL(core, 8, int, (const struct attributes*), &attributes);
}

static void push_in_domain(const char* rest) {
  struct attributes attributes = attributes_of(1);
  attributes.message.ascii = rest + 2;
  level = CALL(core2, 4, int, (void*, const struct attributes*), domain_of(rest[0]), &attributes);
}

static void in_thread(void* (*work)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
}

static int is(const char* word, size_t length, const char* name) {
  return length == strlen(name) && strncmp(word, name, length) == 0;
}

static int run(const char* word) {
  const char* colon = strchr(word, ':');
  const size_t length = colon != NULL ? (size_t)(colon - word) : strlen(word);
  const char* rest = colon != NULL ? colon + 1 : "";
  if (is(word, length, "push")) level = CALL(core, 9, int, (const char*), rest);
  else if (is(word, length, "pushw")) level = CALL(core, 10, int, (const wchar_t*), widened(rest));
  else if (is(word, length, "pushx")) push_with(1, rest);
  else if (is(word, length, "pushxw")) push_with(2, rest);
  else if (is(word, length, "pushr")) push_with(3, rest);
  else if (is(word, length, "pop")) level = CALL(core, 11, int, (void));
  else if (is(word, length, "dpush")) push_in_domain(rest);
  else if (is(word, length, "dpop")) level = CALL(core2, 5, int, (void*), domain_of(rest[0]));
  else if (is(word, length, "start")) range = CALL(core, 5, uint64_t, (const char*), rest);
  else if (is(word, length, "end")) end_range(NULL);
  else if (is(word, length, "thread-end")) in_thread(end_range);
  else if (is(word, length, "mark")) { init(); if (core[2] != NULL) return 4; }
  else if (is(word, length, "sleep")) {
    struct timespec time = {atol(rest) / 1000, atol(rest) % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR) {
    }
  }
  else if (is(word, length, "fork")) child = fork();
  else if (is(word, length, "wait")) { if (child > 0) waitpid(child, NULL, 0); }
  else if (is(word, length, "second")) loaded = -1;
  else if (is(word, length, "depth")) {
    if (level != atoi(rest)) return fprintf(stderr, "level %d and not %s\n", level, rest), 3;
  }
  else if (is(word, length, "loaded")) { init(); if (loaded != atoi(rest)) return 5; }
  else return fprintf(stderr, "what is %s?\n", word), 2;
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

// SPDX-License-Identifier: Apache-2.0
// libheadroom_nvtx.so: NVTX ranges of every domain as phases. Marks, categories, colours, payloads and resources are
// left alone. A range belongs to the thread that began it; those of different domains, and those that are not pushed,
// need not nest.
#include <stdlib.h>
#include <string.h>

#include "inject/nvtx_abi.h"
#include "inject/texts.h"
#include "inject/writer.h"

namespace headroom::inject {

const char* via() { return "nvtx\0\0\0"; }

namespace {

using nvtx::Attributes;

// Texts that were registered, by handle (from 1). They live as long as the program: so may the handles.
constexpr std::size_t kMostRegistered = 4096;
char* registered[kMostRegistered];
std::uint32_t registered_count = 0;  // atomic
std::uintptr_t domain_count = 0;     // atomic

void* handle_of(std::uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): nobody looks behind it
}

void* register_text(const char* text) {
  if (text == nullptr) return nullptr;
  const std::size_t length = text_length(text);
  const std::uint32_t index = __atomic_fetch_add(&registered_count, 1, __ATOMIC_RELAXED);
  if (index >= kMostRegistered) {
    __atomic_fetch_sub(&registered_count, 1, __ATOMIC_RELAXED);
    return nullptr;
  }
  auto* copy = static_cast<char*>(malloc(length + 1));
  if (copy == nullptr) return nullptr;
  memcpy(copy, text, length);
  copy[length] = '\0';
  __atomic_store_n(&registered[index], copy, __ATOMIC_RELEASE);
  return handle_of(std::uintptr_t{index} + 1);
}

std::uint32_t number_of_wide(const wchar_t* wide) {
  if (wide == nullptr) return HEADROOM_NO_NAME;
  char text[kLongestText + 1];
  to_utf8(wide, text);
  return number_of(text);
}

std::uint32_t number_of_message(const Attributes* attributes) {
  if (attributes == nullptr || attributes->struct_bytes < sizeof *attributes) return HEADROOM_NO_NAME;
  const void* message = attributes->message;
  if (attributes->message_kind == nvtx::kAscii) return number_of(static_cast<const char*>(message));
  if (attributes->message_kind == nvtx::kUnicode) return number_of_wide(static_cast<const wchar_t*>(message));
  if (attributes->message_kind != nvtx::kRegistered) return HEADROOM_NO_NAME;
  const auto handle = reinterpret_cast<std::uintptr_t>(message);
  if (handle == 0 || handle > kMostRegistered) return HEADROOM_NO_NAME;
  return number_of(__atomic_load_n(&registered[handle - 1], __ATOMIC_ACQUIRE));
}

// --- ranges that are pushed and popped: a stack per thread and domain ---

constexpr std::uint32_t kDeepest = 64;
struct Pushed {
  const void* domain;
  std::uint32_t name;  // HEADROOM_NO_NAME: it was not marked
};
struct Stack {
  std::uint32_t generation;  // of the process it was filled in, and 1
  std::uint32_t depth, too_deep;
  Pushed pushed[kDeepest];
};
__thread Stack stack;

// In a child after fork() what its parent had pushed is none of the child's phases.
void look_at_generation() {
  if (stack.generation == generation() + 1) return;
  stack.generation = generation() + 1;
  stack.depth = stack.too_deep = 0;
}

int level_of(const void* domain) {
  int level = 0;
  for (std::uint32_t i = 0; i < stack.depth; ++i) level += stack.pushed[i].domain == domain ? 1 : 0;
  return level;
}

int push(const void* domain, std::uint32_t name) {
  look_at_generation();
  const int level = level_of(domain);
  if (stack.depth == kDeepest) {
    ++stack.too_deep;
    return level;
  }
  stack.pushed[stack.depth++] = {domain, name};
  if (name != HEADROOM_NO_NAME) put(HEADROOM_MARK_BEGIN, name);
  return level;
}

int pop(const void* domain) {
  if (!is_on()) return -1;
  look_at_generation();
  if (stack.too_deep > 0) {
    --stack.too_deep;
    return level_of(domain);
  }
  for (std::uint32_t i = stack.depth; i-- > 0;) {
    if (stack.pushed[i].domain != domain) continue;
    const std::uint32_t name = stack.pushed[i].name;
    memmove(&stack.pushed[i], &stack.pushed[i + 1], (stack.depth - i - 1) * sizeof(Pushed));
    --stack.depth;
    if (name != HEADROOM_NO_NAME) put(HEADROOM_MARK_END, name);
    return level_of(domain);
  }
  return -1;
}

// --- ranges that are started and ended, in any thread: their number says all that is needed to end them ---

// 1 bit: 1; 22 bits: generation; 24 bits: thread; 17 bits: name
constexpr unsigned kNameBits = 17, kThreadBits = 24;
constexpr std::uint64_t kIsRange = std::uint64_t{1} << 63;
constexpr std::uint32_t kNoNameBits = (1U << kNameBits) - 1, kGenerationBits = (1U << 22) - 1;
static_assert(HEADROOM_MARKS_NAMES_BYTES < kNoNameBits);

std::uint64_t start(std::uint32_t name) {
  const std::uint32_t by = thread() & 0xffffffU;
  if (name != HEADROOM_NO_NAME) put(HEADROOM_MARK_BEGIN, name, 0, by);
  return kIsRange | static_cast<std::uint64_t>(generation() & kGenerationBits) << (kNameBits + kThreadBits) |
         std::uint64_t{by} << kNameBits | (name & kNoNameBits);
}

void end(std::uint64_t range) {
  const auto name = static_cast<std::uint32_t>(range) & kNoNameBits;
  const auto by = static_cast<std::uint32_t>(range >> kNameBits) & 0xffffffU;
  const auto born = static_cast<std::uint32_t>(range >> (kNameBits + kThreadBits)) & kGenerationBits;
  if ((range & kIsRange) == 0 || name == kNoNameBits || !is_on() || born != (generation() & kGenerationBits)) return;
  put(HEADROOM_MARK_END, name, 0, by);
}

// --- what NVTX calls ---

constexpr int kNoLevel = -1;

std::uint64_t range_start_ex(const Attributes* attributes) {
  return is_on() ? start(number_of_message(attributes)) : 0;
}
std::uint64_t range_start_a(const char* text) { return is_on() ? start(number_of(text)) : 0; }
std::uint64_t range_start_w(const wchar_t* text) { return is_on() ? start(number_of_wide(text)) : 0; }
void range_end(std::uint64_t range) { end(range); }
int range_push_ex(const Attributes* attributes) {
  return is_on() ? push(nullptr, number_of_message(attributes)) : kNoLevel;
}
int range_push_a(const char* text) { return is_on() ? push(nullptr, number_of(text)) : kNoLevel; }
int range_push_w(const wchar_t* text) { return is_on() ? push(nullptr, number_of_wide(text)) : kNoLevel; }
int range_pop() { return pop(nullptr); }

std::uint64_t domain_range_start_ex(void*, const Attributes* attributes) { return range_start_ex(attributes); }
void domain_range_end(void*, std::uint64_t range) { end(range); }
int domain_range_push_ex(void* domain, const Attributes* attributes) {
  return is_on() ? push(domain, number_of_message(attributes)) : kNoLevel;
}
int domain_range_pop(void* domain) { return pop(domain); }
void* domain_register_string_a(void*, const char* text) { return register_text(text); }
void* domain_register_string_w(void*, const wchar_t* wide) {
  if (wide == nullptr) return nullptr;
  char text[kLongestText + 1];
  to_utf8(wide, text);
  return register_text(text);
}
void* domain_create_a(const char*) { return handle_of(__atomic_add_fetch(&domain_count, 1, __ATOMIC_RELAXED)); }
void* domain_create_w(const wchar_t*) { return domain_create_a(nullptr); }

struct Entry {
  std::uint32_t module;
  unsigned place;
  nvtx::Function function;
};

template <class F>
nvtx::Function untyped(F* function) {
  return reinterpret_cast<nvtx::Function>(function);
}

void fill(const nvtx::Callbacks& callbacks) {
  const Entry entries[] = {
      {nvtx::kCore, nvtx::kRangeStartEx, untyped(range_start_ex)},
      {nvtx::kCore, nvtx::kRangeStartA, untyped(range_start_a)},
      {nvtx::kCore, nvtx::kRangeStartW, untyped(range_start_w)},
      {nvtx::kCore, nvtx::kRangeEnd, untyped(range_end)},
      {nvtx::kCore, nvtx::kRangePushEx, untyped(range_push_ex)},
      {nvtx::kCore, nvtx::kRangePushA, untyped(range_push_a)},
      {nvtx::kCore, nvtx::kRangePushW, untyped(range_push_w)},
      {nvtx::kCore, nvtx::kRangePop, untyped(range_pop)},
      {nvtx::kCore2, nvtx::kDomainRangeStartEx, untyped(domain_range_start_ex)},
      {nvtx::kCore2, nvtx::kDomainRangeEnd, untyped(domain_range_end)},
      {nvtx::kCore2, nvtx::kDomainRangePushEx, untyped(domain_range_push_ex)},
      {nvtx::kCore2, nvtx::kDomainRangePop, untyped(domain_range_pop)},
      {nvtx::kCore2, nvtx::kDomainRegisterStringA, untyped(domain_register_string_a)},
      {nvtx::kCore2, nvtx::kDomainRegisterStringW, untyped(domain_register_string_w)},
      {nvtx::kCore2, nvtx::kDomainCreateA, untyped(domain_create_a)},
      {nvtx::kCore2, nvtx::kDomainCreateW, untyped(domain_create_w)},
  };
  for (const Entry& entry : entries) {
    nvtx::Function** functions = nullptr;
    unsigned count = 0;
    if (callbacks.module_functions(entry.module, &functions, &count) == 0 || functions == nullptr) continue;
    if (entry.place < count && functions[entry.place] != nullptr) *functions[entry.place] = entry.function;
  }
}

}  // namespace
}  // namespace headroom::inject

// 0: there is nobody to tell, and NVTX may unload this.
extern "C" __attribute__((visibility("default"))) int
InitializeInjectionNvtx2(  // NOLINT(readability-identifier-naming)
    headroom::inject::nvtx::GetTable get_table) noexcept {
  using namespace headroom::inject;
  if (get_table == nullptr || !is_wanted()) return 0;
  const auto* callbacks = static_cast<const nvtx::Callbacks*>(get_table(nvtx::kCallbacksTable));
  if (callbacks == nullptr || callbacks->struct_bytes < sizeof *callbacks || callbacks->module_functions == nullptr)
    return 0;
  fill(*callbacks);
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::int64_t> count{0};
}  // namespace

// In a file of its own: the compiler must not see through them into the tests.
void* operator new(std::size_t size) {
  ++count;
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(size);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace headroom {

std::int64_t allocations() { return count; }

}  // namespace headroom

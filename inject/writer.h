// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "wire/marks.h"

// The writing side of a ring of marks (wire/marks.h), for libraries that live in other people's programs: no
// exceptions, no locks, no threads, no C++ runtime; errno stays. All of it is safe in several threads and, after a
// fork(), in the child.
namespace headroom::inject {

// Of the library that this is linked into: "marks" or "nvtx".
[[nodiscard]] const char* via();  // 8 bytes

// Whether anybody records. The first call looks.
enum State : int { kUnknown, kOff, kWanted, kMaking, kOn };
extern int state;  // NOLINT(bugprone-dynamic-static-initializers): a constant. Atomic
[[nodiscard]] State look();
[[nodiscard]] inline State now() { return static_cast<State>(__atomic_load_n(&state, __ATOMIC_ACQUIRE)); }

// Whether marks are wanted: nothing is made for that.
[[nodiscard]] inline bool is_wanted() {
  const State state_now = now();
  return state_now == kUnknown ? look() != kOff : state_now != kOff;
}
// Whether marks can be written; makes the ring at the first call.
[[nodiscard]] bool make_ring();
[[nodiscard]] inline bool is_on() {
  const State state_now = now();
  return state_now == kOn || (state_now != kOff && make_ring());
}

// What follows needs is_on().

enum class Text { kName, kValue };  // values leave room for names
// The number of a text: the same one always has the same. HEADROOM_NO_NAME: none, "", or there is no room.
[[nodiscard]] std::uint32_t number_of(const char* text, Text kind = Text::kName);
[[nodiscard]] std::uint32_t thread();      // the calling one
[[nodiscard]] std::uint32_t generation();  // another one in every process that came out of a fork()

void put(headroom_mark_kind kind, std::uint32_t name, double value, std::uint32_t thread);
inline void put(headroom_mark_kind kind, std::uint32_t name, double value = 0) { put(kind, name, value, thread()); }

}  // namespace headroom::inject

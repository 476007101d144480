// SPDX-License-Identifier: Apache-2.0
// A ring of marks that may hold anything: a header, names, and records to the end of the input.
#include <cstring>

#include "marks/ring.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom;
  using namespace headroom::marks;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto head = parse_ring_head(bytes);
  if (!head) return 0;
  const auto rest = bytes.subspan(sizeof(headroom_marks_header));
  const auto names = rest.first(std::min<std::size_t>(rest.size(), head->names_bytes));
  std::vector<headroom_mark> ring(
      std::min<std::size_t>(head->slots, (rest.size() - names.size()) / sizeof(headroom_mark)));
  if (!ring.empty()) std::memcpy(ring.data(), rest.data() + names.size(), ring.size() * sizeof(headroom_mark));
  RingCursor cursor(head->slots);
  std::int64_t lost = 0;
  for (int look = 0; look < 4; ++look) {
    const std::uint32_t slot = cursor.slot();
    HR_CHECK(slot < head->slots, "a slot is one of the ring's");
    const auto window = std::span(ring).subspan(std::min<std::size_t>(slot, ring.size()));
    RingMarks taken;
    const std::size_t passed = cursor.take(window, look * kSecond, look == 3, taken);
    HR_CHECK(passed <= window.size() && taken.marks.size() <= passed, "no record is taken twice");
    HR_CHECK(taken.lost >= 0 && taken.bad >= 0, "counts do not overflow");
    lost += taken.lost;
    for (const headroom_mark& mark : taken.marks) {
      const auto text = mark.name < names.size() ? ring_text(names.subspan(mark.name)) : std::nullopt;
      HR_CHECK(!text || (!text->empty() &&
                         text->data() + text->size() <= reinterpret_cast<const char*>(names.data()) + names.size()),
               "texts lie within the names");
    }
  }
  HR_CHECK(lost <= std::int64_t{1} << 48, "what is lost is finite");
  return 0;
}

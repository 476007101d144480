// SPDX-License-Identifier: Apache-2.0
// libheadroom_marks.so: headroom.h over a ring.
#include "inject/headroom.h"
#include "inject/writer.h"

#define HEADROOM_EXPORT extern "C" __attribute__((visibility("default")))

namespace headroom::inject {

const char* via() { return "marks\0\0"; }

}  // namespace headroom::inject

using namespace headroom::inject;

HEADROOM_EXPORT void headroom_phase_begin(const char* name) noexcept {
  if (is_on()) put(HEADROOM_MARK_BEGIN, number_of(name));
}

HEADROOM_EXPORT void headroom_phase_end(const char* name) noexcept {
  if (is_on()) put(HEADROOM_MARK_END, number_of(name));
}

HEADROOM_EXPORT void headroom_phase(const char* name) noexcept {
  if (is_on()) put(HEADROOM_MARK_PHASE, number_of(name));
}

HEADROOM_EXPORT void headroom_step(double samples) noexcept {
  if (is_on()) put(HEADROOM_MARK_STEP, HEADROOM_NO_NAME, samples);
}

HEADROOM_EXPORT void headroom_metric(const char* name, double value) noexcept {
  if (is_on()) put(HEADROOM_MARK_METRIC, number_of(name), value);
}

HEADROOM_EXPORT void headroom_parameter(const char* name, const char* text) noexcept {
  if (!is_on()) return;
  const std::uint32_t value = number_of(text, Text::kValue);
  if (value != HEADROOM_NO_NAME) put(HEADROOM_MARK_PARAMETER, number_of(name), value);
}

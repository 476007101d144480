// SPDX-License-Identifier: Apache-2.0
#include "python/code_names.h"

#include "model/places.h"

namespace headroom::python {

TextId CodeNames::number_of(std::string_view name, RecordingSink& sink) {
  constexpr TextId kMany = 4096;  // what other code is called has its number by then, while there is room
  const TextId number = sink.intern(name);
  if (number == kNoText) return other_;
  if (other_ == kNoText && (number >= kMany || name == kOtherCode)) other_ = sink.intern(kOtherCode);
  return number;
}

}  // namespace headroom::python

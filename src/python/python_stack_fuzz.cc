// SPDX-License-Identifier: Apache-2.0
// The memory of a process that may hold anything. The first byte chooses the version; what follows lies at the base of
// the image (python_image.h), with _PyRuntime at its beginning. With the cookie of 3.13 in front the bytes say
// themselves where things are.
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "python/python_image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom::python;
  if (size == 0) return 0;
  ImageMemory memory;
  memory.bytes.assign(reinterpret_cast<const std::byte*>(data) + 1, reinterpret_cast<const std::byte*>(data) + size);
  constexpr int kVersions = 6;
  const int minor = kOldestMinor + data[0] % kVersions;
  Target target{.runtime = ImageMemory::kBase, .code_type = ImageMemory::kBase + PythonImage::kRuntimeBytes};
  if (const auto published = published_layout(memory.bytes))
    target.layout = *published;
  else if (const auto known = known_layout(minor))
    target.layout = *known;
  else
    target.layout = layout_314();
  StackWalker walker(memory, target);
  ProcessLook look;
  for (int i = 0; i < 3; ++i) {
    const std::size_t before = walker.system_calls();
    walker.look(look);
    HR_CHECK(walker.system_calls() - before < 200'000, "the work is bounded");
    HR_CHECK(look.threads.size() <= kMostThreads, "threads are bounded");
    for (const ThreadLook& thread : look.threads) {
      HR_CHECK(thread.frames.size() <= kMostFrames, "frames are bounded");
      for (const CodeId id : thread.frames)
        for (const char c : walker.codes().text(id))
          HR_CHECK(static_cast<unsigned char>(c) >= ' ', "texts can be shown");
    }
  }
  return 0;
}

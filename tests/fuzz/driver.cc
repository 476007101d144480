// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: every file of the corpus folder, every prefix of the small ones, and a fixed
// number of mutations of each (same seed every time), so that corpora are an ordinary test.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

void feed(const Bytes& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

void mutate(Bytes& bytes, std::mt19937& random) {
  const std::size_t times = 1 + random() % 8;
  for (std::size_t i = 0; i < times && !bytes.empty(); ++i) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<std::uint8_t>(random());
        break;
      case 1:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(random()));
        break;
      default:
        bytes.resize(at);
        break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t kPrefixLimit = 2048, kMutations = 300;
  if (argc != 2) return std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]), 2;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) return std::fprintf(stderr, "%s: the corpus is empty\n", argv[1]), 1;
  std::mt19937 random(20261120);
  std::size_t inputs = 0;
  for (const auto& path : files) {
    std::ifstream stream(path, std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    for (std::size_t size = 0; size < std::min(bytes.size(), kPrefixLimit); ++size, ++inputs)
      feed(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    feed(bytes);
    for (std::size_t i = 0; i < kMutations; ++i, ++inputs) {
      Bytes mutated = bytes;
      mutate(mutated, random);
      feed(mutated);
    }
  }
  std::printf("%zu corpus files, %zu inputs\n", files.size(), inputs + files.size());
  return 0;
}

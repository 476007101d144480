// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: every file of the corpus folder, prefixes of it spread over its length, and a
// fixed number of mutations of each, so that corpora are an ordinary test. The seed is the same every time, or
// HEADROOM_FUZZ_SEED; it is printed first.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

void feed(const Bytes& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

// Puts another number where one is: what bytes alone seldom do to a text.
void replace_number(Bytes& bytes, std::size_t at, std::mt19937& random) {
  constexpr std::array kNumbers{"0",
                                "-1",
                                "1",
                                "12",
                                "83",
                                "255",
                                "65536",
                                "1e300",
                                "2147483648",
                                "9223372036854775807",
                                "-9223372036854775808",
                                "18446744073709551616",
                                "0.5"};
  const auto digit = [](std::uint8_t byte) { return std::isdigit(byte) != 0; };
  const auto begin = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), digit);
  const auto end = std::find_if_not(begin, bytes.end(), digit);
  const std::string_view number = kNumbers[random() % kNumbers.size()];
  bytes.insert(bytes.erase(begin, end), number.begin(), number.end());
}

void mutate(Bytes& bytes, std::mt19937& random) {
  const std::size_t times = 1 + random() % 8;
  for (std::size_t i = 0; i < times && !bytes.empty(); ++i) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<std::uint8_t>(random());
        break;
      case 1:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(random()));
        break;
      case 3:
        replace_number(bytes, at, random);
        break;
      default:
        bytes.resize(at);
        break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t kPrefixes = 256, kMutations = 100;
  if (argc != 2) return std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]), 2;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) return std::fprintf(stderr, "%s: the corpus is empty\n", argv[1]), 1;
  const char* chosen = std::getenv("HEADROOM_FUZZ_SEED");
  const unsigned long seed = chosen != nullptr && *chosen != '\0' ? std::strtoul(chosen, nullptr, 10) : 20261120;
  std::printf("seed %lu (HEADROOM_FUZZ_SEED repeats it)\n", seed);
  std::fflush(stdout);  // before anything can crash
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  std::size_t inputs = 0;
  for (const auto& path : files) {
    std::ifstream stream(path, std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / kPrefixes, ++inputs)
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

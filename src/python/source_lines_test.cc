// SPDX-License-Identifier: Apache-2.0
#include "python/source_lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace headroom::python {

namespace {

struct Dump {
  int minor;
  std::int32_t first_line;
  std::uint64_t code_bytes;
  std::string_view table;                                     // in hexadecimal
  std::vector<std::pair<std::uint64_t, std::int32_t>> truth;  // offset from which on a line runs, and it; 0: none
};

// One function (a loop with a call over four lines, try with except and finally, two hundred and three hundred empty
// lines), compiled by 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0. The truth is what these say of it themselves:
// dis.findlinestarts, code.co_lines.
const std::vector<Dump>& dumps() {
  // clang-format off
  static const std::vector<Dump> all{
    {8, 4, 152,
     "00010401080102010201060102ff04fe040504010c010e01040102ff0e030c07040108000a7f004a0a01107f007f0030",
     {{0, 5}, {4, 6}, {12, 7}, {14, 8}, {16, 9}, {22, 10}, {24, 9}, {28, 7}, {32, 12}, {36, 13}, {48, 14}, {62, 15}, {66, 16}, {68, 15}, {82, 18}, {94, 25}, {98, 26}, {116, 227}, {126, 228}, {142, 530}}},
    {9, 4, 170,
     "00010401080102010201060102ff04fe040504010c010c01040102ff0c0316070401127f004a0a01127f007f0030",
     {{0, 5}, {4, 6}, {12, 7}, {14, 8}, {16, 9}, {22, 10}, {24, 9}, {28, 7}, {32, 12}, {36, 13}, {48, 14}, {60, 15}, {64, 16}, {66, 15}, {78, 18}, {100, 25}, {104, 26}, {122, 227}, {132, 228}, {150, 530}}},
    {10, 4, 170,
     "04010801020102010601020104ff04fe04050c010c010401020108ff02ff028014040407100104ff007f0a4b020124ff",
     {{0, 5}, {4, 6}, {12, 7}, {14, 8}, {16, 9}, {22, 10}, {24, 9}, {28, 7}, {32, 12}, {36, 13}, {48, 14}, {60, 15}, {64, 16}, {66, 15}, {74, 14}, {76, 0}, {78, 18}, {98, 25}, {102, 26}, {118, 25}, {122, 227}, {132, 228}, {134, 227}}},
    {11, 4, 372,
     "8000d80c0d8045d81117f0000c051af0000c051a8805d80f148875d80c11f002010d1df000010d1dd8161bf003010d1df100"
     "010d1df400010d1df10504100af40004100a8804f00a06091ad80c119054894d88458845f8dd0f19f00002091bf00002091b"
     "f00002091bdd14179805d81819f10301151bf40001151b884588458845f00302091bf8f8f8f008000d138f4b8a4b894d8c4d"
     "884d884df888468f4b8a4b894d8c4d884d884df8f8f8f00e000b10f000010521d8080d9011890a88059045974a924a914c94"
     "4c904cf003000b10f000010521f55406000a0e886389198c19f0006f04050d9061d80f10f0036f04050df0006f04050df000"
     "6f04050df0006f04050df1006f04050df4006f04050df0006f04050df0006f04050df0006f04050df0006f04050df0006f04"
     "050df0006f04050df8f8f8f0006f04050df0006f04050df0006f04050df0006f04050df0006f04050df0006f04050d",
     {{0, 4}, {2, 5}, {6, 6}, {14, 7}, {18, 8}, {20, 9}, {24, 10}, {26, 9}, {42, 7}, {58, 12}, {60, 13}, {72, 0}, {74, 14}, {92, 15}, {106, 16}, {108, 15}, {128, 14}, {130, 0}, {136, 18}, {178, 0}, {180, 18}, {222, 0}, {228, 25}, {232, 26}, {282, 25}, {286, 227}, {318, 228}, {320, 227}, {354, 0}, {360, 227}}},
    {12, 4, 338,
     "8000d80c0d8045d81117f2000c051a8805d90f14d80c11e0161bf603010d1dd81112f203000e0ff200010d1df30504100a88"
     "04f00a06091ad80c119054894d8845f00a000d138f4b894b8d4df0190c051af126000b10d8080d9011890a88059045974a91"
     "4a944cf203000b10f45406000a0e88638b19f0006f04050d9061d80f10f7036f04050df1006f04050df9f27506010d1df8f4"
     "0a00101af20002091bdc14179805d81819f30301151b8a45f00302091bfbf008000d138f4b894b8d4dfaf762066f04050df0"
     "006f04050dfa",
     {{0, 4}, {2, 5}, {6, 6}, {16, 7}, {20, 8}, {22, 10}, {24, 9}, {38, 10}, {40, 9}, {52, 7}, {62, 12}, {64, 13}, {74, 18}, {108, 6}, {110, 25}, {114, 26}, {156, 25}, {162, 227}, {186, 228}, {188, 227}, {208, 0}, {212, 9}, {218, 0}, {220, 14}, {236, 15}, {248, 16}, {250, 15}, {264, 14}, {266, 0}, {274, 18}, {308, 0}, {314, 227}, {332, 0}}},
    {13, 4, 376,
     "8000d80c0d8045db11178805d90f14d80c11e1161bf303010d1dd9161b9011f303000e0fd9161bf103010d1df30504100a88"
     "04f00a06091ad80c11894d8845f00a000d138f4b894b8e4df119001218f626000b10d8080d9011890a8805974a914a944cf7"
     "03000b108825f45406000a0e88638c199061d80f10f703000a138919f9f27506010d1df8f40a00101af30002091bdc141798"
     "05d81819f30301151b8a45f00302091bfbf008000d138f4b894b8d4dfaf76206000a138d19fa",
     {{0, 4}, {2, 5}, {6, 6}, {16, 7}, {20, 8}, {22, 10}, {26, 9}, {34, 10}, {40, 9}, {48, 10}, {52, 9}, {56, 7}, {66, 12}, {68, 13}, {76, 18}, {112, 6}, {116, 25}, {130, 26}, {170, 25}, {188, 227}, {212, 228}, {214, 227}, {234, 0}, {238, 9}, {244, 0}, {246, 14}, {264, 15}, {276, 16}, {278, 15}, {292, 14}, {294, 0}, {302, 18}, {336, 0}, {342, 227}, {370, 0}}},
  };
  // clang-format on
  return all;
}

std::vector<std::byte> bytes_of(std::string_view hexadecimal) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(hexadecimal.data() + i, hexadecimal.data() + i + 2, value, 16);
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

TEST(LineTable, SaysWhatEachVersionSaysItself) {
  for (const Dump& dump : dumps()) {
    const auto lines = LineTable::read(dump.minor, dump.first_line, bytes_of(dump.table));
    ASSERT_TRUE(lines) << dump.minor;
    EXPECT_EQ(lines->code_bytes(), dump.minor < 10 ? LineTable::kOpen : dump.code_bytes) << dump.minor;
    for (std::size_t i = 0; i < dump.truth.size(); ++i) {
      const std::uint64_t end = i + 1 < dump.truth.size() ? dump.truth[i + 1].first : dump.code_bytes;
      for (std::uint64_t at = dump.truth[i].first; at < end; ++at)
        EXPECT_EQ(lines->line_at(at).value_or(0), dump.truth[i].second) << "3." << dump.minor << ", offset " << at;
    }
    if (dump.minor >= 10) {
      EXPECT_FALSE(lines->line_at(dump.code_bytes)) << dump.minor;
    }
    EXPECT_NE(lines->line_at(UINT64_MAX - 1), 5) << "before the first instruction";
  }
}

// Some of the pieces of source, as CPython 3.11 reads them out of these tables (code.co_positions); {}: none.
TEST(LineTable, SaysWhichPieceOfSourceRuns) {
  struct Truth {
    int minor;
    std::uint64_t offset;
    LineTable::Extent extent;
  };
  const std::vector<Truth> all{{11, 0, {4, 4, 0, 0}},
                               {11, 8, {6, 18, 4, 25}},
                               {11, 26, {9, 10, 12, 28}},
                               {11, 64, {13, 13, 12, 25}},
                               {11, 72, {}},
                               {11, 86, {14, 16, 8, 26}},
                               {11, 108, {15, 16, 20, 26}},
                               {12, 22, {10, 10, 22, 27}},
                               {12, 46, {9, 10, 12, 28}},
                               {12, 96, {18, 18, 12, 25}},
                               {12, 332, {}},
                               {13, 14, {6, 6, 8, 13}},
                               {13, 26, {9, 10, 12, 28}},
                               {13, 56, {7, 11, 15, 9}},
                               {13, 116, {25, 25, 10, 15}}};
  for (const Truth& truth : all) {
    const auto dump =
        std::find_if(dumps().begin(), dumps().end(), [&](const Dump& d) { return d.minor == truth.minor; });
    const auto extent = LineTable::extent_at(dump->first_line, bytes_of(dump->table), truth.offset);
    EXPECT_EQ(extent.value_or(LineTable::Extent{}), truth.extent) << "3." << truth.minor << ", offset " << truth.offset;
    EXPECT_FALSE(LineTable::extent_at(dump->first_line, bytes_of(dump->table), dump->code_bytes)) << truth.minor;
  }
  EXPECT_FALSE(LineTable::extent_at(1, {}, 0));
  EXPECT_FALSE(LineTable::extent_at(1, bytes_of("d80cd8"), 2)) << "an entry that is cut";
  EXPECT_FALSE(LineTable::extent_at(1, bytes_of("e801"), 0)) << "an entry that knows its line alone";
}

TEST(LineTable, AnEmptyOneHasNoLines) {
  EXPECT_EQ(LineTable::read(9, 7, {})->line_at(4), 7);  // none but the first
  for (const int minor : {10, 11, 14}) EXPECT_FALSE(LineTable::read(minor, 7, {})->line_at(0)) << minor;
}

TEST(LineTable, WhatMakesNoSenseIsNone) {
  EXPECT_FALSE(LineTable::read(9, 1, bytes_of("000104")));             // half a pair
  EXPECT_FALSE(LineTable::read(11, 1, bytes_of("00d80c")));            // begins within an entry
  EXPECT_FALSE(LineTable::read(11, 1, bytes_of("d80cd8")));            // an entry that is cut
  EXPECT_FALSE(LineTable::read(11, 1, bytes_of("d8d80c0d")));          // an entry within an entry
  EXPECT_FALSE(LineTable::read(11, 1, bytes_of("e87f7f7f7f7f7f01")));  // a number without end
}

TEST(NameOfCall, IsThatOfTheFunctionAndNothingOfItsArguments) {
  for (const auto& [source, name] :
       std::vector<std::pair<const char*, const char*>>{{"loss.item()", "loss.item"},
                                                        {"training.step().item()", "item"},
                                                        {"np.sort(values[3:], axis=0)", "np.sort"},
                                                        {"parts[0].cpu()", "cpu"},
                                                        {"\", \".join(f'{a})' for a in names)", "join"},
                                                        {"open('a) # b', \"it's\")", "open"},
                                                        {"send(\n    token,  # secret (\n)", "send"},
                                                        {"f(a)(b)", ""},
                                                        {"table['f'](b)", ""},
                                                        {"f()", "f"}})
    EXPECT_EQ(name_of_call(source), name) << source;
}

TEST(NameOfCall, WhatIsNoCallHasNone) {
  for (const char* source : {"",       ")",           "x",        "a + f(x)", "-f(x)",  "not f(x)",
                             "not(x)", "await f(x)",  "await(f)", "(a, b)",   "[f(x)]", "f(x",
                             "f(x))",  "f[x]",        "'a)",      "\"\"\"a)", "# f(x)", "x if f(y) else g(z)",
                             "f (x)",  "größe.item()"})
    EXPECT_EQ(name_of_call(source), "") << source;
  EXPECT_EQ(name_of_call(std::string(61, 'f') + "()"), "") << "too long a name";
  EXPECT_EQ(name_of_call("f(" + std::string(5000, ' ') + ")"), "") << "too long a call";
}

class SourceText : public testing::Test {
 protected:
  SourceText() {
    folder_ = std::filesystem::temp_directory_path() / ("source-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~SourceText() override { std::filesystem::remove_all(folder_); }
  // `ago`: seconds since it was written, against the begin of this process.
  std::string file(const std::string& name, const std::string& text, int ago) {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    const time_t when = ::time(nullptr) - ago;
    const timespec times[2]{{when, 0}, {when, 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(SourceText, OfAnOldFileIsKnown) {
  SourceFiles files(::getpid());
  const std::string path = file("a.py", "import os\nx = 1; os.read(\n  3, 4)\nlast()", 3600);
  EXPECT_EQ(files.call_at(path, {2, 3, 7, 7}), "os.read");
  EXPECT_EQ(files.call_at(path, {4, 4, 0, 6}), "last");
  EXPECT_EQ(files.call_at(path, {2, 2, 0, 5}), "") << "no call";
  EXPECT_EQ(files.call_at(path, {4, 4, 0, 7}), "") << "beyond the file";
  EXPECT_EQ(files.call_at(path, {9, 9, 0, 6}), "") << "beyond its lines";
  EXPECT_EQ(files.call_at(path, {2, 1'000'000'000, 0, 6}), "");
  EXPECT_EQ(files.call_at(path, {4, 4, 6, 2}), "") << "ends before it begins";
}

TEST_F(SourceText, ThatWasWrittenSinceIsNot) {
  SourceFiles files(::getpid());
  EXPECT_EQ(files.call_at(file("new.py", "f()", -3600), {1, 1, 0, 3}), "");
}

TEST_F(SourceText, OfWhatIsNoFileIsNot) {
  SourceFiles files(::getpid());
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder_.string(), std::string("train.py"), std::string("<string>"),
                                  (folder_ / "missing.py").string(), file("large.py", std::string(300'000, '#'), 3600)})
    EXPECT_EQ(files.call_at(path, {1, 1, 0, 3}), "") << path;
}

TEST_F(SourceText, OfManyFilesIsBounded) {
  SourceFiles files(::getpid());
  int known = 0;
  for (int i = 0; i < 40; ++i)
    known += files.call_at(file(std::to_string(i) + ".py", "f()", 3600), {1, 1, 0, 3}) == "f" ? 1 : 0;
  EXPECT_EQ(known, 32);
  EXPECT_EQ(files.call_at(folder_ / "0.py", {1, 1, 0, 3}), "f");
}

}  // namespace

}  // namespace headroom::python

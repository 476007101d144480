// SPDX-License-Identifier: Apache-2.0
#include "python/source_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace headroom::python {
namespace {

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

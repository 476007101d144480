// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "model/dictionary.h"
#include "model/places.h"
#include "python/python_image.h"
#include "python/stack_reader.h"
#include "python/walker.h"
#include "record/reader.h"
#include "record/writer.h"

namespace headroom::python {
namespace {

constexpr std::int32_t kMany = (1 << 18) + 1;

// One code object that becomes another with each line that it is given.
class MadeCode {
 public:
  MadeCode(std::size_t name, std::size_t file) : code_(image_.code(std::string(name, 'n'))) {
    image_.put(code_ + image_.target.layout.file, image_.text(std::string(file, 'f')));
  }
  CodeId make(std::int32_t line) {
    image_.put(code_ + image_.target.layout.first_line, line);
    snapshot_.take({});
    EXPECT_TRUE(table.check(snapshot_, code_));
    return table.running(snapshot_, code_, code_ + image_.target.layout.instructions).value();
  }
  void set_flags(std::uint32_t flags) { image_.put(code_ + image_.target.layout.flags, flags); }

 private:
  PythonImage image_{*known_layout(11)};
  Address code_;
  Snapshot snapshot_{image_.memory};

 public:
  CodeTable table{image_.target.layout, image_.target.code_type};
};

TEST(CodeGrowth, BeyondSoManyNamesCodeIsOtherCode) {
  MadeCode code(12, 20);
  for (std::int32_t line = 1; line <= kMany; ++line) (void)code.make(line);
  EXPECT_EQ(code.table.texts(), CodeTable::kMostTexts + 1);
  EXPECT_LT(code.table.text_bytes(), CodeTable::kMostTextBytes);
  EXPECT_EQ(code.table.text(code.make(1)), "nnnnnnnnnnnn (ffffffffffffffffffff:1)") << "what has a name keeps it";
  EXPECT_EQ(code.table.text(code.make(kMany)), kOtherCode);
  EXPECT_EQ(code.make(kMany - 1), code.make(kMany));
}

TEST(CodeGrowth, LongNamesAreBoundedInBytes) {
  MadeCode code(300, 1024);
  for (std::int32_t line = 1; line <= 1 << 15; ++line) (void)code.make(line);
  EXPECT_LE(code.table.text_bytes(), CodeTable::kMostTextBytes + kOtherCode.size());
  EXPECT_GT(code.table.text_bytes(), CodeTable::kMostTextBytes / 10 * 9) << "the bound is of bytes, not of names";
  EXPECT_LT(code.table.texts(), CodeTable::kMostTexts);
  EXPECT_EQ(code.table.text(code.make(kMany)), kOtherCode);
}

TEST(CodeGrowth, OfOtherCodeGeneratorsAreStillTold) {
  MadeCode code(300, 1024);
  for (std::int32_t line = 1; line <= 1 << 14; ++line) (void)code.make(line);
  const CodeId plain = code.make(kMany);
  code.set_flags(0x20);  // CO_GENERATOR
  const CodeId generator = code.make(kMany + 1);
  EXPECT_EQ(code.table.text(generator), kOtherCode);
  EXPECT_TRUE(code.table.resumable(generator));
  EXPECT_FALSE(code.table.resumable(plain));
}

TEST(CodeGrowth, ARecordingThatTakesNoMoreNamesHasOtherCode) {
  MemorySink sink;
  CodeNames names;
  const std::string name(300, 'n');
  TextId last = kNoText;
  for (std::int32_t i = 0; i < kMany + 1; ++i) last = names.number_of(fmt::format("{}{:06}", name, i), sink);
  ASSERT_LT(last, sink.recording().texts.size());
  EXPECT_EQ(sink.recording().texts[last], kOtherCode);
  EXPECT_TRUE(names.is_other(last));
  EXPECT_EQ(names.number_of(name + "000001", sink), 1U);
  std::size_t bytes = 0;
  for (const std::string& text : sink.recording().texts) bytes += text.size();
  EXPECT_LE(bytes, Dictionary::kMostTextBytes);
}

TEST(CodeGrowth, ARecordingThatTakesNothingHasNoNameForIt) {
  class Shut final : public RecordingSink {
   public:
    SourceId add_source(const Source&) override { return kNoSource; }
    void add_row(SourceId, Nanos, std::span<const Cell>) override {}
    TextId intern(std::string_view) override { return kNoText; }
    ListId intern_list(std::span<const TextId>) override { return kNoList; }
    void add_list_row(SourceId, const ListRow&) override {}
    void add_event(const Event&) override {}
    void add_loss(const Loss&) override {}
    void set_meta(const RecordingMeta&) override {}
  } sink;
  CodeNames names;
  const TextId number = names.number_of("f", sink);
  EXPECT_EQ(number, kNoText);
  EXPECT_FALSE(names.is_other(number));
}

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// A job that makes a function, calls it and drops it, all day long, as one sees it: three looks a second.
class DayOfNewCode {
 public:
  explicit DayOfNewCode(RecordingSink& sink) : sink_(sink) {
    constexpr std::size_t kAtATime = 16;  // functions; more than looks in which a code object is trusted to be the same
    for (std::size_t i = 0; i < kAtATime; ++i) codes_.push_back(image_.code("made"));
    top_ = image_.frame(codes_[0], image_.frame(image_.code("train", 7), image_.frame(image_.code("main"), 0)));
    image_.thread(top_, 1);
    source_ = sink.add_source({SourceKind::kPythonThread, "1/1/1", kNoSource, {}});
  }
  void look(std::int32_t number) {
    const Address code = codes_[static_cast<std::size_t>(number) % codes_.size()];
    image_.put(code + image_.target.layout.first_line, number + 1);
    image_.put(top_ + image_.target.layout.code, code);
    walker_.look(look_);
    ids_.clear();
    for (const CodeId id : look_.threads.at(0).frames)
      ids_.push_back(names_.number_of(walker_.codes().text(id), sink_));
    sink_.add_list_row(source_, {number * (kSecond / 3), sink_.intern_list(ids_), 1});
  }
  [[nodiscard]] const CodeTable& codes() const { return walker_.codes(); }

 private:
  RecordingSink& sink_;
  PythonImage image_{*known_layout(11)};
  std::vector<Address> codes_;
  Address top_ = 0;
  SourceId source_ = kNoSource;
  StackWalker walker_{image_.memory, image_.target};
  ProcessLook look_;
  CodeNames names_;
  std::vector<TextId> ids_;
};

TEST(CodeGrowth, OfAJobThatMakesCodeAllDayTheRecorderAndTheFileStaySmall) {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "headroom-growth-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/day.hrec";
  WriterOptions options;
  options.when_full = WriterOptions::WhenFull::kWait;
  auto writer = Writer::create(path, options);
  ASSERT_TRUE(writer) << writer.error().what;
  (*writer)->set_meta({.start = 0, .end = kMany * (kSecond / 3)});
  DayOfNewCode day(**writer);
  [[maybe_unused]] std::size_t early = 0;  // RSS under sanitizers is theirs
  for (std::int32_t i = 0; i < kMany; ++i) {
    day.look(i);
    if (i == kMany / 2) early = resident_bytes();
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_bytes(), early + (std::size_t{8} << 20)) << "the second half of the day costs nothing";
#endif
  EXPECT_LE(day.codes().texts(), CodeTable::kMostTexts + 1);
  EXPECT_LT(day.codes().text_bytes(), CodeTable::kMostTextBytes);
  ASSERT_TRUE((*writer)->close());
  EXPECT_LT(fs::file_size(path), std::uintmax_t{12} << 20);
  const auto recording = read_recording(path);
  fs::remove_all(folder);
  ASSERT_TRUE(recording) << recording.error().what;
  const std::vector<ListRow>& rows = recording->tracks.at(0).lists;
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(kMany)) << "every look is there";
  std::vector<std::string> last;
  for (const TextId text : recording->lists[rows.back().list]) last.push_back(recording->texts[text]);
  EXPECT_THAT(last, testing::ElementsAre("main (t.py:1)", "train (t.py:7)", "(other code)"));
  EXPECT_LE(recording->texts.size(), CodeTable::kMostTexts + 1);
}

}  // namespace
}  // namespace headroom::python

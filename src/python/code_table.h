// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/layout.h"
#include "python/memory.h"
#include "python/source_lines.h"

namespace headroom::python {

using CodeId = std::uint32_t;

enum class LinesOf : std::uint8_t {
  kOwnCode,  // of the user's own: what is recorded for long
  kAllCode,  // of libraries, too
};

// The code objects of a process that were seen so far, as texts: "Net.forward (/home/u/train.py:38)" with the line that
// runs, of the user's own code, or without one where that cannot be told; of libraries, where nobody looks for it and
// every new line is a new stack to record, with the line where the function begins. Before 3.11 a code object does not
// know the class it belongs to: "forward (…)". Bounded, as a program may make code without end: what comes after
// kMostTexts or kMostTextBytes is kOtherCode.
class CodeTable {
 public:
  static constexpr std::size_t kMostTexts = std::size_t{1} << 16, kMostTextBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMostLineParts = std::size_t{1} << 20;  // of all tables of lines; then none is read
  static constexpr std::size_t kMostCalls = std::size_t{1} << 13;      // instructions that are looked up in the source

  CodeTable(const Layout& layout, Address code_type, LinesOf lines = LinesOf::kOwnCode)
      : layout_(layout), code_type_(code_type), lines_of_(lines) {}

  // Whether there is a code object at `at`. One that is known is told again by its type, the addresses of its name and
  // file, and its line: its texts are then not read again.
  [[nodiscard]] bool check(Snapshot& snapshot, Address at);
  // The same, if that was done in one of the last kTrusted looks: code objects hardly ever go.
  [[nodiscard]] bool trusted(Address at) const;
  // The code object at `at` while it is at `instruction` (Layout::instruction); nothing if there is none.
  [[nodiscard]] std::optional<CodeId> running(Snapshot& snapshot, Address at, std::uint64_t instruction);
  // Of code that is the user's own and is there, running() was asked that: what `source` says that the instruction
  // calls, as a text like those of functions, "loss.item() (/home/u/train.py:41)". Nothing where that is not known.
  [[nodiscard]] std::optional<CodeId> called(Snapshot& snapshot, Address at, std::uint64_t instruction,
                                             SourceFiles& source);
  void next_look() { ++looks_; }
  static constexpr std::size_t kTrusted = 10;
  [[nodiscard]] Region region(Address at) const { return {at, layout_.code_bytes()}; }

  [[nodiscard]] const std::string& text(CodeId id) const { return texts_[id]; }
  [[nodiscard]] std::size_t texts() const { return texts_.size(); }
  [[nodiscard]] std::size_t text_bytes() const { return text_bytes_; }
  // Of a generator or coroutine: somebody else called it on, it is never the outermost.
  [[nodiscard]] bool resumable(CodeId id) const { return resumable_[id]; }

 private:
  struct Lines {
    std::optional<LineTable> table;                                  // nothing: it cannot be read
    std::vector<std::pair<std::int32_t, CodeId>> ids;                // by line; 0: not told
    std::unordered_map<std::uint64_t, std::optional<CodeId>> calls;  // by offset
  };
  struct Known {
    Address name = 0, file = 0;
    std::int32_t line = 0;
    bool resumable = false, told = false;  // told: its lines are
    CodeId id = 0;
    std::size_t checked = 0;       // the look in which it was last there
    std::unique_ptr<Lines> lines;  // once somebody asked
  };
  [[nodiscard]] std::span<const std::byte> bytes_of_lines(Snapshot& snapshot, Address at) const;
  [[nodiscard]] std::optional<LineTable> read_lines(Snapshot& snapshot, Address at, std::int32_t first_line);
  [[nodiscard]] std::uint64_t offset_of(Address at, std::uint64_t instruction) const;
  [[nodiscard]] CodeId id_of(const std::string& text, bool resumable);
  CodeId add(std::string_view text);

  const Layout& layout_;
  Address code_type_;
  LinesOf lines_of_;
  std::unordered_map<Address, Known> known_;
  std::deque<std::string> texts_;  // where the keys of ids_ lie
  std::unordered_map<std::string_view, CodeId> ids_;
  std::vector<bool> resumable_;
  std::size_t text_bytes_ = 0, line_parts_ = 0, calls_ = 0;
  std::array<std::optional<CodeId>, 2> other_;  // of code that is not resumable, and that is
  std::size_t looks_ = 0;
};

// A compact str object as UTF-8, at most `most` characters of it and "..." where there are more; nothing if there is
// none, or one longer than any name. What cannot be shown becomes '?'.
[[nodiscard]] std::optional<std::string> read_text(Snapshot& snapshot, const Layout& layout, Address at,
                                                   std::size_t most);

}  // namespace headroom::python

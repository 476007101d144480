// SPDX-License-Identifier: Apache-2.0
#include "python/walker.h"

#include <algorithm>
#include <utility>

namespace headroom::python {

namespace {

constexpr std::size_t kMostListed = 512;  // threads that are counted
constexpr std::size_t kMostSteps = 2 * kMostFrames + 16;
constexpr std::size_t kMostTries = 6;
constexpr std::size_t kBehind = 512;  // of a frame: room for those that it calls
constexpr std::uint8_t kMostOwners = 5;
constexpr Address kTags = 7;  // in references of 3.14: objects lie at multiples of 8

constexpr bool plausible(Address at) {
  constexpr Address kLowest = 4096, kUserSpace = Address{1} << 47;
  return at >= kLowest && at < kUserSpace && at % kWord == 0;
}

// Brent's: says of frames that lead in a circle, and of more than any stack has, that there is no end.
class CircleFinder {
 public:
  bool closes_at(Address at) {
    if (at == turtle_ || steps_ > kMostSteps) return true;
    if (steps_ == 0 || steps_ == until_) turtle_ = at;
    if (steps_++ == until_) until_ *= 2;
    return false;
  }

 private:
  Address turtle_ = 0;  // no frame is there
  std::size_t steps_ = 0, until_ = 2;
};

}  // namespace

StackWalker::StackWalker(Memory& memory, const Target& target, SourceFiles* source, LinesOf lines)
    : target_(target),
      source_(source),
      codes_(target_.layout, target_.code_type, lines),
      first_(memory),
      second_(memory) {}

const std::byte* StackWalker::touch(Snapshot& snapshot, Address at, std::size_t size, std::vector<Region>& touched) {
  const std::byte* bytes = snapshot.need(at, size);
  if (bytes != nullptr) touched.push_back({at, size});
  return bytes;
}

// 0: nobody; nothing where that is not known.
std::optional<Address> StackWalker::gil_holder(Address interpreter) {
  const Layout& layout = target_.layout;
  if (layout.gil_current != Layout::kNone) {
    const std::byte* holder = touch(first_, target_.runtime + layout.gil_current, kWord, shared_);
    return holder != nullptr ? std::optional(number_at<Address>(holder, 0)) : std::nullopt;
  }
  if (layout.gil == Layout::kNone) return std::nullopt;
  const std::byte* pointer = touch(first_, interpreter + layout.gil, kWord, shared_);
  const Address gil = pointer != nullptr ? number_at<Address>(pointer, 0) : 0;
  if (!plausible(gil)) return std::nullopt;
  const std::byte* state = touch(first_, gil, std::max(layout.gil_holder, layout.gil_locked) + kWord, shared_);
  if (state == nullptr) return std::nullopt;
  const auto locked = number_at<std::int32_t>(state, layout.gil_locked);
  if (locked == 0) return 0;
  return locked == 1 ? std::optional(number_at<Address>(state, layout.gil_holder)) : std::nullopt;
}

// The states of an interpreter's threads from this one on, which is the newest. False if the list changed while it was
// read.
bool StackWalker::list_states(Address interpreter, Address state) {
  const Layout& layout = target_.layout;
  states_.clear();
  while (state != 0 && states_.size() < kMostListed) {
    const std::byte* thread = plausible(state) ? first_.need(state, layout.thread_bytes()) : nullptr;
    if (thread == nullptr || number_at<Address>(thread, layout.interpreter) != interpreter) return false;
    states_.push_back(state);
    state = number_at<Address>(thread, layout.next);
  }
  return !states_.empty();
}

// False if the list changed while it was read.
bool StackWalker::list_threads(ProcessLook& look) {
  const Layout& layout = target_.layout;
  look.result = ProcessLook::Result::kRejected;
  const std::byte* interpreters = touch(first_, target_.runtime + layout.interpreters, 2 * kWord, shared_);
  if (interpreters == nullptr) return false;
  const auto newest = number_at<Address>(interpreters, 0), main = number_at<Address>(interpreters, kWord);
  look.more_interpreters = main != 0 && newest != main;  // 0: it is being made
  const std::byte* head = plausible(main) ? touch(first_, main + layout.threads, kWord, shared_) : nullptr;
  const auto state = head != nullptr ? number_at<Address>(head, 0) : 0;
  if (main == 0 || (head != nullptr && state == 0)) look.result = ProcessLook::Result::kNoInterpreter;
  if (!list_states(main, state)) return false;
  std::reverse(states_.begin(), states_.end());
  look.left_out = states_.size() - std::min(states_.size(), kMostThreads);
  for (std::size_t i = kMostThreads; i < states_.size(); ++i) shared_.push_back({states_[i], layout.thread_bytes()});
  states_.resize(states_.size() - look.left_out);
  const std::optional<Address> holder = gil_holder(main);
  look.threads.resize(states_.size());
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const std::byte* bytes = first_.need(states_[i], layout.thread_bytes());
    if (bytes == nullptr) return false;
    ThreadLook& thread = look.threads[i];
    thread.state = states_[i];
    thread.thread_id = number_at<std::uint64_t>(bytes, layout.thread_id);
    thread.native_id = layout.native_id == Layout::kNone ? 0 : number_at<std::uint64_t>(bytes, layout.native_id);
    thread.gil = !holder ? Gil::kUnknown : *holder == thread.state ? Gil::kHeld : Gil::kNotHeld;
  }
  look.result = ProcessLook::Result::kRead;
  return true;
}

// Where the innermost frame of a thread is, 0: there is none; nothing where that cannot be read.
std::optional<Address> StackWalker::innermost_frame(Snapshot& snapshot, Address state, std::vector<Region>& touched) {
  const Layout& layout = target_.layout;
  const std::byte* thread = touch(snapshot, state, layout.thread_bytes(), touched);
  if (thread == nullptr) return std::nullopt;
  const auto at = number_at<Address>(thread, layout.frame);
  if (layout.cframe_frame == Layout::kNone || at == 0) return at;
  const std::byte* frame = plausible(at) ? touch(snapshot, at + layout.cframe_frame, kWord, touched) : nullptr;
  return frame != nullptr ? std::optional(number_at<Address>(frame, 0)) : std::nullopt;
}

std::uint8_t StackWalker::owner_of(const std::byte* frame) const {
  return target_.layout.owner == Layout::kNone ? std::uint8_t{0} : number_at<std::uint8_t>(frame, target_.layout.owner);
}

bool StackWalker::is_frame(const std::byte* bytes) const {
  const bool typed = target_.layout.frames_are_objects && target_.frame_type != 0;
  return owner_of(bytes) < kMostOwners && (!typed || number_at<Address>(bytes, kTypeOffset) == target_.frame_type);
}

StackWalker::Frame StackWalker::frame_of(Address at, const std::byte* bytes) const {
  const Layout& layout = target_.layout;
  const bool by_c = layout.entry != Layout::kNone && number_at<std::uint8_t>(bytes, layout.entry) != 0;
  const std::uint64_t instruction = layout.instructions == Layout::kNone
                                        ? static_cast<std::uint64_t>(number_at<std::int32_t>(bytes, layout.instruction))
                                        : number_at<Address>(bytes, layout.instruction);
  return {at, number_at<Address>(bytes, layout.code) & ~kTags, !by_c, instruction};
}

void StackWalker::walk(Snapshot& snapshot, Address state, Walk& walk, std::vector<Region>& touched) {
  walk.frames.clear();
  walk.sound = walk.cut = false;
  const std::optional<Address> innermost = innermost_frame(snapshot, state, touched);
  if (!innermost) return;
  CircleFinder circle;
  for (Address at = *innermost; at != 0;) {
    if (!plausible(at) || circle.closes_at(at)) return;
    const std::byte* bytes = touch(snapshot, at, target_.layout.frame_bytes(), touched);
    if (bytes == nullptr || !is_frame(bytes)) return;
    if (owner_of(bytes) < target_.layout.first_shim) {
      walk.cut = walk.frames.size() == kMostFrames;
      if (walk.cut) break;
      const Frame frame = frame_of(at, bytes);
      if (!plausible(frame.code)) return;
      walk.frames.push_back(frame);
    } else if (!walk.frames.empty()) {
      walk.frames.back().from_python = false;
    }
    at = number_at<Address>(bytes, target_.layout.previous);
  }
  walk.sound = true;
}

StackWalker::Known& StackWalker::known(const ThreadLook& thread) {
  auto found = std::find_if(known_.begin(), known_.end(),
                            [&](const Known& k) { return k.state == thread.state && k.thread_id == thread.thread_id; });
  if (found == known_.end()) found = known_.insert(found, Known{.state = thread.state, .thread_id = thread.thread_id});
  found->seen = looks_;
  return *found;
}

// The code of frame number `i` from the outermost, where it need not be looked at: it was there a moment ago. All of a
// stack is looked at once in kTrusted looks, so that what is gone is believed for a second at most.
bool StackWalker::knows_code(const Known& known, std::size_t i, Address code) const {
  if (looks_ - known.checked >= CodeTable::kTrusted) return false;
  const auto& frames = known.walk.frames;
  return (i < frames.size() && frames[frames.size() - 1 - i].code == code) || codes_.trusted(code);
}

bool StackWalker::check_codes(Snapshot& snapshot, const Walk& walk, const Known& known) {
  ids_.clear();
  for (auto frame = walk.frames.rbegin(); frame != walk.frames.rend(); ++frame) {
    if (!knows_code(known, ids_.size(), frame->code) && !codes_.check(snapshot, frame->code)) return false;
    const auto id = codes_.running(snapshot, frame->code, frame->instruction);
    if (!id) return false;
    ids_.push_back(*id);
  }
  return true;
}

std::optional<CodeId> StackWalker::called(Snapshot& snapshot, const Walk& walk) {
  if (source_ == nullptr || walk.frames.empty()) return std::nullopt;
  return codes_.called(snapshot, walk.frames.front().code, walk.frames.front().instruction, *source_);
}

// Takes over where the frames are in their code, of a stack that is otherwise as it was. Whether a line, or what is
// called there, is another one.
bool StackWalker::go_on(Snapshot& snapshot, Known& known) {
  bool moved = false;
  std::vector<Frame>& frames = known.walk.frames;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::uint64_t now = walk_.frames[i].instruction;
    if (std::exchange(frames[i].instruction, now) == now) continue;
    CodeId& id = known.frames[frames.size() - 1 - i];
    const CodeId line = codes_.running(snapshot, frames[i].code, now).value_or(id);
    moved |= std::exchange(id, line) != line;
    if (i > 0) continue;
    const auto call = called(snapshot, known.walk);
    moved |= std::exchange(known.call, call) != call;
  }
  return moved;
}

// The frames among what was touched, then what leads to them, then the frames again.
void StackWalker::order_twice(std::vector<Region>& regions) const {
  const auto end_of_page = [](Address at) { return (at / kPage + 1) * kPage; };
  const auto is_frame = [&](const Region& region) { return region.size == target_.layout.frame_bytes(); };
  const auto others = std::stable_partition(regions.begin(), regions.end(), is_frame);
  std::vector<Region> leads(others, regions.end());
  regions.erase(others, regions.end());
  for (Region& region : regions) {
    // New frames lie behind, unless they are objects.
    const Address end = region.at + region.size;
    region.size = std::max(end, std::min(end + kBehind, end_of_page(end - 1))) - region.at;
  }
  join(regions);
  join(leads);
  const std::size_t frames = regions.size();
  regions.reserve(2 * frames + leads.size());
  regions.insert(regions.end(), leads.begin(), leads.end());
  for (std::size_t i = 0; i < frames; ++i) regions.push_back(Region(regions[i]));
}

// Every frame but the innermost, and the outermost in any case, was the same in both copies, and is in a call. Without
// the latter, a function that was left and came back between the two, at the place of another one in between, would
// seem to have called what that one called.
bool StackWalker::held_still(Snapshot& snapshot, const Walk& walk) const {
  const Layout& layout = target_.layout;
  for (std::size_t i = walk.frames.size() == 1 ? 0 : 1; i < walk.frames.size(); ++i) {
    const Address at = walk.frames[i].at;
    const std::byte* before = snapshot.earlier(at, layout.frame_bytes());
    const std::byte* after = snapshot.need(at, layout.frame_bytes());
    if (before == nullptr || number_at<Address>(before, layout.code) != number_at<Address>(after, layout.code) ||
        number_at<Address>(before, layout.previous) != number_at<Address>(after, layout.previous))
      return false;
    if (i > 0 && layout.stack_top != Layout::kNone && walk.frames[i - 1].from_python &&
        (number_at<std::int32_t>(before, layout.stack_top) < 0 || number_at<std::int32_t>(after, layout.stack_top) < 0))
      return false;
  }
  return true;
}

// Takes over the stack in `walk_`, if it was there.
bool StackWalker::accept(Snapshot& snapshot, ThreadLook& thread, Known& known) {
  if (!walk_.sound || snapshot.grown() || !held_still(snapshot, walk_)) return false;
  if (!check_codes(snapshot, walk_, known)) return false;
  if (!ids_.empty() && !walk_.cut && codes_.resumable(ids_.front())) return false;  // it was just left
  if (looks_ - known.checked >= CodeTable::kTrusted) known.checked = looks_;
  std::swap(known.walk, walk_);
  thread.stack = known.walk.frames.empty() ? ThreadLook::Stack::kEmpty : ThreadLook::Stack::kRead;
  thread.cut = known.walk.cut;
  const auto call = called(snapshot, known.walk);
  thread.same = ids_ == known.frames && call == known.call;
  known.frames = ids_;
  known.call = call;
  return true;
}

// Copies what was touched of the thread by the last walk, until a stack is found that was there.
void StackWalker::settle(ThreadLook& thread, Known& known) {
  for (std::size_t attempt = 0; attempt < kMostTries; ++attempt) {
    again_ = known.touched;
    order_twice(again_);
    for (std::size_t i = 0; i < walk_.frames.size(); ++i) {
      const Address code = walk_.frames[walk_.frames.size() - 1 - i].code;
      if (!knows_code(known, i, code)) again_.push_back(codes_.region(code));
    }
    second_.take(again_);
    known.touched.clear();
    walk(second_, thread.state, walk_, known.touched);
    if (accept(second_, thread, known)) return;
  }
  thread.stack = ThreadLook::Stack::kRejected;
  known.walk.frames.clear();
}

void StackWalker::look(ProcessLook& look) {
  ++looks_;
  codes_.next_look();
  look.left_out = 0;
  shared_.clear();
  first_.take(plan_);
  if (!list_threads(look)) {
    look.threads.clear();
    plan_.clear();
    return;
  }
  for (ThreadLook& thread : look.threads) {
    Known& mine = known(thread);
    mine.touched.clear();
    walk(first_, thread.state, walk_, mine.touched);
    thread.cut = walk_.cut;
    thread.same = false;
    const bool unchanged = walk_.sound && !walk_.frames.empty() && walk_.frames == mine.walk.frames &&
                           walk_.cut == mine.walk.cut && looks_ - mine.checked < CodeTable::kTrusted;
    if (unchanged) {
      thread.stack = ThreadLook::Stack::kRead;
      thread.same = !go_on(first_, mine);
    } else if (walk_.sound && walk_.frames.empty()) {
      thread.stack = ThreadLook::Stack::kEmpty;
      mine.walk.frames.clear();
    } else if (!accept(first_, thread, mine)) {
      settle(thread, mine);
    }
    thread.frames.clear();
    if (thread.stack != ThreadLook::Stack::kRead) continue;
    thread.frames = mine.frames;
    if (mine.call) thread.frames.push_back(*mine.call);
  }
  std::erase_if(known_, [&](const Known& one) { return one.seen != looks_; });
  // Between the two copies of the frames lies as little as possible.
  again_.clear();
  for (const Known& one : known_) again_.insert(again_.end(), one.touched.begin(), one.touched.end());
  order_twice(again_);
  join(shared_);
  plan_ = shared_;
  plan_.insert(plan_.end(), again_.begin(), again_.end());
}

}  // namespace headroom::python

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HEADROOM_H
#define HEADROOM_H
/*
 * What a program says of itself to a recorder: its phases, its steps, what came of them. `headroom run` and `headroom
 * batch` tell the program by its environment (HEADROOM_MARKS) that they record; without it every call is a load and a
 * branch. Link with -lheadroom_marks.
 *
 * Every function may be called at any time, from any thread, in a child after fork() too. None of them fails, waits,
 * prints, or changes errno. Texts are UTF-8; names are cut at 255 bytes. A program has some thousands of different
 * names, no more: a number that changes does not belong into a name ("epoch", and not "epoch 17").
 */

#ifdef __cplusplus
#define HEADROOM_NOEXCEPT noexcept
extern "C" {
#else
#define HEADROOM_NOEXCEPT
#endif

/* A phase of the calling thread, within those of it that are open. An end ends the innermost open one of that name,
 * with all that was begun within; NULL: the innermost. */
void headroom_phase_begin(const char* name) HEADROOM_NOEXCEPT;
void headroom_phase_end(const char* name) HEADROOM_NOEXCEPT;

/* From now on this phase and no other, on the calling thread; NULL: none. */
void headroom_phase(const char* name) HEADROOM_NOEXCEPT;

/* A step was done, with so many samples; 0: not known. */
void headroom_step(double samples) HEADROOM_NOEXCEPT;

/* What came of it ("val_loss"), and what it was done with ("lr", "0.1"). Seldom, not at every step: a value every ten
 * seconds is kept, and the last. */
void headroom_metric(const char* name, double value) HEADROOM_NOEXCEPT;
void headroom_parameter(const char* name, const char* text) HEADROOM_NOEXCEPT;

#ifdef __cplusplus
}

namespace headroom {

/* A phase that lasts as long as this lives. `name` must live as long, too. */
class Phase {
 public:
  explicit Phase(const char* name) noexcept : name_(name) { headroom_phase_begin(name_); }
  ~Phase() { headroom_phase_end(name_); }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  const char* name_;
};

}  // namespace headroom
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"
#include "diagnose/idle_parts.h"

// Functions of the job that finer evidence than /proc names (Python stacks).
namespace headroom::diagnose {

// What would overturn what stacks say.
inline constexpr const char* kOtherFunctions =
    "headroom stacks REC: if most of the idle seconds lie in other functions, this is wrong";

struct NamedCode {
  std::int32_t where = -1;  // in Ledger::places
  std::string place;        // "build_graph (train.py)"
  CodeLine line;            // that more than half of the looks there were at, where that is known
  double share = 0;         // of the claimed time
  // What it may be of it: kernels ran beside a part of such code, and nothing tells which.
  double least = 0, most = 0;
  double beside_kernels = 0;               // what there was of it beside kernels, in terms of the claimed time
  [[nodiscard]] std::string spot() const;  // for people: the place with its line
};

// Of a time of this length in an account, by place (Ledger::places); most first.
[[nodiscard]] std::vector<NamedCode> named_code(const Analysis& a, const std::map<std::int32_t, Nanos>& by_place,
                                                Account account, Nanos all);

// What the claimed time went to, most first; empty where nothing names it.
[[nodiscard]] std::vector<NamedCode> code_in(const Analysis& a, const Claims& claims);

// Of the claimed time the share in code beside which hardly a kernel ran, in all the looks at it; `idle` is
// idle_shares, or launch_idle_shares, of CodeSeen.
[[nodiscard]] double share_without_kernels(const Analysis& a, const Claims& claims,
                                           const std::map<std::string, double>& idle);

// The thread that had the interpreter (GIL) in most of the looks at the main one in this account; nullptr: none had.
[[nodiscard]] const ThreadCode* interpreter_taken(const Analysis& a, Account account);

// Whether most of it is at one of these places, as Analysis::feeding: those of threads that make what the main one
// waits for.
[[nodiscard]] bool mostly_at(const Analysis& a, const Claims& claims, const std::set<std::string>& places);

// Of the claimed time the share in functions of the job's own, by stacks: imports and libraries aside.
[[nodiscard]] double own_code(const Analysis& a, const Claims& claims);

// Whether most of it is in functions whose names say that they compile: code of the job's own is in no compiler that a
// rule knows.
[[nodiscard]] bool is_called_compiling(const Analysis& a, const Claims& claims);

// Which family stacks mostly tell of its place; kNone where none.
[[nodiscard]] stacks::Family family_of(const Analysis& a, const ClaimedPiece& piece);

// Of the claimed time the share at places of which stacks mostly tell this family.
[[nodiscard]] double share_in(const Analysis& a, const Claims& claims, stacks::Family family);

// What the loader's workers were at in the claimed time, by their stacks, the most first; and in which share of these
// they did not wait for something to do.
struct WorkersAt {
  std::vector<NamedCode> code;
  double at_work = 0;
};
[[nodiscard]] WorkersAt workers_at(const Analysis& a, const Claims& claims);

// Of the claimed time the share in which its stacks were in code that uses no GPU.
[[nodiscard]] double plain_share(const Analysis& a, const Claims& claims);

// Whether a process of the job was on a device.
[[nodiscard]] bool holds(const Analysis& a, SourceId process, std::size_t device);

// The wait for another process of the job that most of the claimed time is, or may be where its stacks do not tell
// (`told`); nothing where there is none, or it is less than half.
[[nodiscard]] std::optional<PeerWait> peer_in(const Analysis& a, const Claims& claims, bool told);
// "meanwhile process 71 (GPU 0) was at work in 97 % of the looks at its stacks: score (train.py)"
[[nodiscard]] std::string peer_sentence(const Analysis& a, const PeerWait& wait);

// Says in a finding what its time went to: in its evidence, and in its title where one function has most of it. Who
// called that is said once, and kept in `callers_told`.
void name_the_code(const Analysis& a, const IdleParts& parts, std::set<std::string>& callers_told, Finding& finding);

// Says in a finding about the input what the loader's workers were at.
void name_the_workers_code(const Analysis& a, Finding& finding);

// named_phases.cc: the parts of its time that a job itself names.

// Of the claimed time how much lies in which phase, of those that the job itself names.
[[nodiscard]] std::map<std::string, Nanos> by_named_phase(const Analysis& a, const Claims& claims);

// The one that four fifths of it lie in; "": none.
[[nodiscard]] std::string phase_of_most(const Analysis& a, const Claims& claims);

// What of it lies before the first range that the job, its framework or a library marked, where such ranges have most
// of the rest: what they mark is what the job does again and again.
[[nodiscard]] Claims before_first_range(const Analysis& a, const Claims& claims);

// Says in a finding which phases its time lies in, of those that the job itself names: what stacks tell of phases is in
// the accounts already.
void name_the_phase(const Analysis& a, Finding& finding);

}  // namespace headroom::diagnose

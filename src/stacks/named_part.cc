// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "stacks/families.h"

namespace headroom::stacks {

namespace {

LoopPart part_of(std::string_view name) {
  // Names of a whole step alone: a scheduler has a step(), too, once per epoch.
  constexpr std::array<std::string_view, 8> kSteps{"train_step",      "training_step",  "train_batch",
                                                   "training_batch",  "train_on_batch", "train_one_step",
                                                   "train_minibatch", "one_step"};
  constexpr std::array<std::string_view, 4> kEnds{"epoch_end", "end_of_epoch", "end_epoch", "after_epoch"};
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (std::find(kSteps.begin(), kSteps.end(), name) != kSteps.end()) return LoopPart::kStep;
  return std::any_of(kEnds.begin(), kEnds.end(), has) ? LoopPart::kEpochEnd : LoopPart::kUnknown;
}

}  // namespace

namespace {

// Words of names that say nothing of what a function is for.
constexpr std::array<std::string_view, 10> kWhole{"run",   "main",      "<module>", "epoch",    "loop",
                                                  "comp>", "<genexpr>", "<lambda>", "__call__", "train"};

template <std::size_t N>
bool has_any(std::string_view function, const std::array<std::string_view, N>& words) {
  const std::string name = lower(function);
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  return std::any_of(words.begin(), words.end(), has) || std::any_of(kWhole.begin(), kWhole.end(), has);
}

}  // namespace

bool may_validate(std::string_view function) {
  return has_any(function, std::array<std::string_view, 23>{"val",   "eval", "test",   "metric", "score",   "acc",
                                                            "auc",   "bleu", "rouge",  "recall", "predict", "infer",
                                                            "gener", "deco", "sample", "report", "confus",  "matrix",
                                                            "loss",  "fid",  "bench",  "check",  "probe"});
}

bool may_load(std::string_view function) {
  return has_any(
      function,
      std::array<std::string_view, 88>{
          "load",   "read",  "get",   "fetch",  "sampl",  "batch",  "aug",   "transf", "crop",   "decod",  "token",
          "collat", "data",  "item",  "next",   "iter",   "prep",   "pars",  "pad",    "pack",   "mask",   "norm",
          "encod",  "img",   "image", "gener",  "make",   "build",  "draw",  "choice", "shuffl", "window", "frame",
          "record", "row",   "csv",   "json",   "file",   "shard",  "chunk", "queue",  "stream", "tile",   "patch",
          "resiz",  "rotat", "flip",  "mix",    "mosaic", "word",   "piece", "vocab",  "text",   "ray",    "point",
          "neighb", "negat", "pair",  "episod", "replay", "buffer", "fit",   "feat",   "table",  "input",  "instanc",
          "exampl", "sent",  "doc",   "slic",   "lookup", "group",  "clean", "split",  "fold",   "select", "index",
          "noise",  "hand",  "recv",  "receiv", "pull",   "take",   "label", "target", "seq",    "graph",  "node"});
}

NamedPart named_part(std::span<const Frame> frames) {
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (is_unnamed(frames[i]) || is_library(frames[i]) || is_call(frames[i])) continue;
    if (const LoopPart part = part_of(short_name(frames[i])); part != LoopPart::kUnknown)
      return {part, words(frames[i])};
  }
  return {};
}

}  // namespace headroom::stacks

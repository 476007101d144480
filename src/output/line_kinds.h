// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// What trainers print, save for their progress bars (bar.h), in one table. Pure. docs/output.md shows it.
namespace headroom::output {

enum class LineKind : std::uint8_t {
  kTrainingBegins,
  kTrainingEnds,
  kEpochBegins,
  kEpochTold,
  kFoldBegins,
  kValidationBegins,
  kValidationEnds,
  kCheckpointBegins,
  kCheckpointGoesOn,
  kCheckpointEnds,
  kTrainerRow,
  kTrainerFact,
  kPrecision,
  kEarlyStopping,
  kBoostingBegins,
  kBoostingRow,
  kBoostingEnds,
  kStep,
  kRate,
  kMetrics,
};

// What a line is known by that tells metrics, in regular expressions.
#define HEADROOM_TOLD "loss|accuracy|acc|auc|f1|rmse|mae|perplexity|ppl|recall|ndcg|mrr|bleu|iou|psnr|ssim"

struct LineRule {
  LineKind kind;
  std::string_view regex;    // RE2; of a line without what a logger puts in front
  std::string_view example;  // of a line that it is for
  std::string_view of;       // who prints it
};

// In order: the first of a kind that matches counts.
inline constexpr std::array kLineRules{
    LineRule{LineKind::kTrainingBegins, R"(^\*{3,} Running training \*{3,}$)", "***** Running training *****",
             "Hugging Face Trainer"},
    LineRule{LineKind::kTrainingEnds, R"(^Training completed\. Do not forget to share your model )",
             "Training completed. Do not forget to share your model on huggingface.co/models =)",
             "Hugging Face Trainer"},
    LineRule{LineKind::kTrainingEnds, R"(^`?Trainer\.fit`? stopped: )",
             "`Trainer.fit` stopped: `max_epochs=5` reached.", "PyTorch Lightning"},
    LineRule{
        LineKind::kEpochBegins,
        R"((?i)^[-=*#\s\[(]*(?:(?:starting|start|beginning|begin)(?: of)? )?(?:train(?:ing)? )?epoch[ :#=]*[\[(]?\d+\]?(?:\s*(?:/|of)\s*\d+)?[\])]?[-=*#:.\s]*$)",
        "Epoch 3/5", "Keras and many scripts"},
    LineRule{
        LineKind::kEpochTold,
        R"((?i)^[-=*#\s\[(]*(?:train(?:ing)?:? )?epoch[ :#=]*[\[(]?\d+\s*(?:/|of)\s*\d+[\])]?[ \t,:;|-].*(?:)" HEADROOM_TOLD
        R"(|error|score)[\w@]*\s*[:=| ]\s*[-+\d.])",
        "Epoch 3/5 | loss 0.34 | val_loss 0.41", "many scripts"},
    LineRule{
        LineKind::kEpochTold,
        R"((?i)^[-=*#\s\[(]*(?:train(?:ing)? )?epoch[ :#]*[\[(]?\d+\s*(?:/|of)\s*\d+[\])]?[ :,-]*(?:is )?(?:completed?|finished|done|ended)\b)",
        "Epoch 3/5 completed in 4:12", "many scripts"},
    LineRule{
        LineKind::kFoldBegins,
        R"((?i)^[-=*#\s]*(?:(?:starting|start|beginning|begin|running|run|training|train)(?: of| on)? )?\[?fold[ :#]*\[?\d+\]?(?:\s*(?:/|of)\s*\d+)?\]?[-=*#:.\s]*$)",
        "Fold 1/5", "many scripts"},
    LineRule{LineKind::kValidationBegins, R"(^\*{3,} Running (?i:evaluation|prediction) \*{3,}$)",
             "***** Running Evaluation *****", "Hugging Face Trainer"},
    LineRule{
        LineKind::kValidationBegins,
        R"((?i)^[-=*#\s]*(?:(?:running|starting|start|begin|beginning)(?: the)? )?(?:validation|evaluation|validating|evaluating))"
        R"((?: (?:epoch|step|model|loop|set|the|on|for|at|of|after|\d+|\w+ set))*\s*(?:\.{2,3}|…)?[-=*#\s]*$)",
        "Validating...", "many scripts"},
    LineRule{LineKind::kValidationEnds,
             R"((?i)^[-=*#\s]*(?:validation|evaluation)(?: epoch)? (?:done|finished|complete|completed)\b)",
             "Validation finished in 12.3 s", "many scripts"},
    LineRule{LineKind::kValidationEnds,
             R"((?i)\b(?:val|valid|validation|eval|test)[ _/-](?:set )?(?:\w+ ){0,2}\w*(?:)" HEADROOM_TOLD
             R"(|error|score)\w*\s*[:=]+\s*[-+\d.])",
             "val_loss: 0.34", "many scripts"},
    LineRule{LineKind::kCheckpointBegins, R"(^Saving model checkpoint to )",
             "Saving model checkpoint to out/checkpoint-500", "Hugging Face Trainer"},
    LineRule{LineKind::kCheckpointBegins, R"(^Epoch \d+: .*\bsaving model to )",
             "Epoch 3: val_loss improved from 0.51 to 0.48, saving model to best.keras", "Keras"},
    LineRule{
        LineKind::kCheckpointBegins,
        R"((?i)^[-=*#\s]*(?:saving|writing) (?:a |the |new |best |last |model |current |training )*(?:checkpoint|model|snapshot|weights)(?: (?:to|at|in|as|for|after|into)\b.*|\s*(?:\.{2,3}|…))?$)",
        "Saving checkpoint to runs/7/last.pt", "many scripts"},
    LineRule{LineKind::kCheckpointGoesOn,
             R"(^(?:Configuration saved in |tokenizer config file saved in |Special tokens file saved in ))",
             "Configuration saved in out/checkpoint-500/config.json", "Hugging Face Trainer"},
    LineRule{
        LineKind::kCheckpointEnds,
        R"((?i)^(?:model weights saved in |saved (?:\w+ )*(?:checkpoint|model|snapshot|weights)\b|(?:checkpoint|model|snapshot) (?:was )?(?:saved|written)\b))",
        "Saved checkpoint to runs/7/last.pt", "many scripts"},
    LineRule{LineKind::kTrainerRow, R"(^\{['"][\w/.-]+['"]: .*['"](?:epoch|learning_rate|\w+_runtime)['"]: .*\}$)",
             "{'loss': 0.34, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 1.2}", "Hugging Face Trainer"},
    LineRule{LineKind::kTrainerRow,
             R"((?i)^\{[^{}]*"[\w/.-]*(?:)" HEADROOM_TOLD R"()(?:@\d+)?(?:/\w+)?": *"?[-+]?\d[^{}]*\}$)",
             "{\"step\": 120, \"loss\": 0.34, \"val_acc\": 0.61}", "many scripts"},
    LineRule{
        LineKind::kTrainerFact,
        R"(^\s*(Num examples|Num Epochs|Instantaneous batch size per device|Total train batch size \(w\. parallel, distributed & accumulation\)|Gradient Accumulation steps|Total optimization steps|Number of trainable parameters) = ([\d,]+)$)",
        "  Total train batch size (w. parallel, distributed & accumulation) = 64", "Hugging Face Trainer"},
    LineRule{LineKind::kPrecision, R"(^Using (bfloat16|16bit|half)(?: native)? Automatic Mixed Precision)",
             "Using bfloat16 Automatic Mixed Precision (AMP)", "PyTorch Lightning"},
    LineRule{LineKind::kPrecision, R"(^Using \w+ (half) precision backend$)", "Using auto half precision backend",
             "Hugging Face Trainer"},
    LineRule{
        LineKind::kPrecision,
        R"((?i)(?:^|[\s'"({,;|])(?:amp|autocast)_dtype['"]?\s*[:=]\s*['"]?(?:torch\.)?((?:b?float|bf|fp)16|(?:float|fp)32)\b)",
        "amp_dtype=torch.bfloat16", "many scripts"},
    // Of prose ("mixed precision: none of the ...") and of other things' precision nothing is taken; "precision: 0.93"
    // is a score.
    LineRule{
        LineKind::kPrecision,
        R"((?i)(?:^|[({,;|]\s*|['"])(?:mixed[ _-]?precision(?: type)?|use_amp)['"]?\s*[:=]\s*['"]?((?:b?float|bf|fp)16|(?:float|fp)32|no|none|false|true)['"]?\s*(?:[,;)}|\]]|$))",
        "Mixed precision type: fp16", "Accelerate and many scripts"},
    LineRule{
        LineKind::kPrecision,
        R"((?i)(?:^|[({,;|]\s*|['"])precision['"]?\s*[:=]\s*['"]?((?:b?float|bf|fp)16(?:-mixed|-true)?|(?:float|fp)32|(?:16|32)-(?:mixed|true))['"]?\s*(?:[,;)}|\]]|$))",
        "precision: 16-mixed", "many scripts"},
    // Said to be off, one of two kinds of 16 bits leaves the other.
    LineRule{
        LineKind::kPrecision,
        R"((?i)(?:^|[({,;|]\s*|['"\[])(?:fp16|bf16|amp|autocast)['"\]]?(?:\s+enabled)?['"]?\s*[:=]\s*['"]?(true|on|yes)['"]?\s*(?:[,;)}|\](]|$))",
        "Autocast enabled: True", "many scripts"},
    LineRule{
        LineKind::kPrecision,
        R"((?i)(?:^|[({,;|]\s*|['"\[])(?:amp|autocast)['"\]]?(?:\s+enabled)?['"]?\s*[:=]\s*['"]?(false|off|no)['"]?\s*(?:[,;)}|\](]|$))",
        "Namespace(lr=0.1, amp=False)", "many scripts"},
    LineRule{LineKind::kEarlyStopping, R"(^Training until validation scores don't improve for \d+ rounds)",
             "Training until validation scores don't improve for 50 rounds", "LightGBM"},
    LineRule{LineKind::kEarlyStopping, R"(^Monitored metric \S+ did not improve in the last \d+ records\.)",
             "Monitored metric val_loss did not improve in the last 3 records. Best score: 0.123. Signaling Trainer to "
             "stop.",
             "PyTorch Lightning"},
    LineRule{LineKind::kEarlyStopping,
             R"((?i)^(?:epoch \d+: )?early[ -]stopping(?:\s*[.!]?$| (?:at|after|triggered)\b))",
             "Epoch 12: early stopping", "Keras and many scripts"},
    LineRule{LineKind::kBoostingBegins, R"(^\[LightGBM\] \[Info\] Start training from score )",
             "[LightGBM] [Info] Start training from score 0.499120", "LightGBM"},
    LineRule{LineKind::kBoostingRow, R"(^(?:\[\d\d:\d\d:\d\d\] )?\[(\d{1,9})\]:?\s+([^\t]*:\s*[-+\d.einfa]+.*)$)",
             "[100]\ttraining's l2: 0.31\tvalid_0's l2: 0.42", "LightGBM and XGBoost"},
    LineRule{LineKind::kBoostingEnds,
             R"(^(?:Early stopping|Did not meet early stopping\.|Stopping\.) ?,?\s*[Bb]est iteration)",
             "Early stopping, best iteration is:", "LightGBM and XGBoost"},
    LineRule{
        LineKind::kStep,
        R"((?i)^(?:train(?:ing)?:? )?(?:epoch[ :#\[]*\d+(?:\s*/\s*\d+)?\]?[ ,:|-]+)?\[?(?:global[ _])?(?:step|iter|iteration|batch)s?[ :=#\[]*(\d{1,12})(?:\s*(?:/|of)\s*\d+)?\]?[ \t,:;|-].*\bloss\b)",
        "step 1200/5000 | loss 2.31 | 312 ms", "many scripts"},
    // Alone on its line it may be a stage of something: of ten or more it is one of a loop.
    LineRule{
        LineKind::kStep,
        R"((?i)^(?:train(?:ing)?:? )?(?:epoch[ :#\[]*\d+(?:\s*/\s*\d+)?\]?[ ,:|-]+)?\[?(?:global[ _])?(?:step|iter|iteration)[ :=#\[]*(\d{1,12})\s*(?:/|of)\s*\d{2,12}\]?$)",
        "step 1200/5000", "many scripts"},
    LineRule{
        LineKind::kRate,
        R"((?i)(?:^|[\s=:(|])([\d,]*\d(?:\.\d+)?) ?(samples|sample|images|image|imgs|img|examples|tokens|tok|steps|iterations|iters)/s(?:ec|econd)?\b)",
        "speed: 512.3 samples/s", "many scripts"},
    // Alone on its line, with others at most.
    LineRule{LineKind::kMetrics,
             R"((?i)^[-=*#>\s]*(?:(?:[a-z]\w*[ _/-]){0,2}\w*(?:)" HEADROOM_TOLD
             R"()(?:@\d+)?(?:\s*[:=]\s*|\s+)[-+]?\d[\d.]*(?:e[-+]?\d+)?%?[\s,;|]*)+$)",
             "Train Loss: 0.34, Train Acc: 91.2%", "many scripts"},
    // Likewise, with others of the job's own and the number of an epoch or a fold.
    LineRule{
        LineKind::kMetrics,
        R"((?i)^[-=*#>\s(]*(?:[a-z][\w.]*: +)?(?:\[?(?:epoch|ep|round|fold)[ :#=]*\d+\s*(?:/|of)\s*\d+[\])]?[\s:,;|-]+)?(?:[a-z][\w/-]*\s*[:=]\s*[-+]?\d[\d.]*(?:e[-+]?\d+)?%?[\s,;|]*)*(?:[a-z]\w*[ _/-]){0,2}\w*(?:)" HEADROOM_TOLD
        R"()(?:@\d+)?(?:\s*[:=]\s*|\s+)[-+]?\d[\d.]*(?:e[-+]?\d+)?%?[\s,;|]*(?:[a-z][\w/-]*\s*[:=]\s*[-+]?\d[\d.]*(?:e[-+]?\d+)?%?[\s,;|]*)*$)",
        "fold 1/3 loss=0.34 sharpe=1.2", "many scripts"},
    // Behind the number of an epoch that is of no told whole, or of a row.
    LineRule{
        LineKind::kMetrics,
        R"((?i)^[-=*#\s(]*(?:(?:train(?:ing)? )?(?:epoch|ep|round|fold)[ :#=]*[\[(]?\d+[\])]?|\[\d+\])[ \t,:;|-]+.*(?:)" HEADROOM_TOLD
        R"()(?:@\d+)?\w*\s*(?:[:=|]\s*|\s)[-+]?\d)",
        "epoch 3 loss 0.34 ic=0.051", "many scripts"},
};

struct LineMatch {
  const LineRule* rule = nullptr;
  std::array<std::string_view, 2> groups{};  // into the line
};

// The line without what a logger puts in front of it: a time, a level, who says it.
[[nodiscard]] std::string_view without_log_prefix(std::string_view line);

// The rules that a line (without its prefix) fulfils, at most one of each kind, in the table's order.
[[nodiscard]] std::vector<LineMatch> kinds_of(std::string_view line);

// A parameter that the job settled on, as its line says it.
struct ToldParameter {
  std::string_view name, value;  // into the line, or into the program
};
[[nodiscard]] std::optional<ToldParameter> parameter_of(const LineMatch& match);

}  // namespace headroom::output

// SPDX-License-Identifier: Apache-2.0
#include "tasks/template.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "base/child.h"
#include "base/fd.h"
#include "base/strings.h"
#include "tasks/template_task.h"

namespace headroom::tasks {
namespace {

const Parameters kLr{{"lr", "0.1"}, {"note", "it's {here} $HOME \"x\""}};

Result<std::string> fill_text(std::string_view text, Form form, Braces braces = Braces::kStrict) {
  HR_TRY(const Pieces pieces, parse_template(text, braces));
  return fill(pieces, filling_of(kLr), form);
}

TEST(Template, ParametersAreFilledInAndThePlaceIsLeft) {
  EXPECT_EQ(fill_text("--lr={lr} --gpu={gpu} {{x}}", Form::kWord), "--lr=0.1 --gpu={gpu} {{x}}");
  EXPECT_EQ(fill_text("{{{lr}}}", Form::kText), "{0.1}");
  EXPECT_EQ(fill_text("{note}", Form::kText), "it's {here} $HOME \"x\"");
  EXPECT_EQ(fill_place(*fill_text("{note}/{slot}", Form::kWord), {{}, {}, 3}), "it's {here} $HOME \"x\"/3");
}

TEST(Template, ErrorsNameTheBraceAndSuggest) {
  EXPECT_EQ(parse_template("a{").error().what, "a single '{' at character 2 of 'a{'");
  EXPECT_EQ(parse_template("a}b").error().what, "a single '}' at character 2 of 'a}b'");
  EXPECT_EQ(parse_template("{\"a\": 1}").error().hint, "write a brace twice ({{ or }}) where a brace itself is meant");
  EXPECT_EQ(fill_text("{lrr}", Form::kWord).error().what, "unknown placeholder {lrr}");
  EXPECT_EQ(fill_text("{lrr}", Form::kWord).error().hint, "did you mean {lr}?");
  EXPECT_EQ(fill_text("{gpu_idx}", Form::kWord).error().hint, "did you mean {gpu_index}?");
  EXPECT_EQ(fill_text("{something_else}", Form::kWord).error().hint,
            "known here: {lr}, {note}, {gpu}, {gpu_index}, {gpu_uuid}, {slot}; a brace itself is written twice: "
            "{{something_else}}");
  EXPECT_EQ(fill_text("{slot}", Form::kText).error().what, "{slot} is not known before the task starts");
}

TEST(Template, ThePlaceOfATask) {
  const Place place{{2, 5}, {"GPU-a", "GPU-b"}, 7};
  EXPECT_EQ(fill_place("{gpu} {gpu_index} {gpu_uuid} {slot} {{gpu}} {other}", place),
            "0,1 2,5 GPU-a,GPU-b 7 {gpu} {other}");
  EXPECT_EQ(fill_place("[{gpu}]", {}), "[]");
  EXPECT_TRUE(uses_gpu("x{gpu_uuid}"));
  EXPECT_FALSE(uses_gpu("{slot}{{gpu}}"));
}

TEST(Template, ShellVariablesAreTheShells) {
  EXPECT_EQ(fill_text("echo ${HOME:-{x}} {lr} $X", Form::kShell, Braces::kShell), "echo ${{HOME:-{{x}}}} 0.1 $X");
  EXPECT_EQ(fill_place("echo ${{HOME}}", {}), "echo ${HOME}");
  EXPECT_FALSE(parse_template("awk '{print $1}'", Braces::kShell));
}

TEST(Template, ParallelAndVerbatimLeaveOtherBraces) {
  EXPECT_EQ(*parse_template("awk '{print $1}' {}", Braces::kParallel),
            (Pieces{{"awk '{print $1}' ", false}, {"", true}}));
  EXPECT_EQ(*parse_template("find {} {a} {{gpu}} {gpu} }}{", Braces::kVerbatim),
            (Pieces{{"find {} {a} {gpu} ", false}, {"gpu", true}, {" }}{", false}}));
}

TEST(Template, AValueInsideACommandInDoubleQuotesIsRefused) {
  EXPECT_EQ(fill_text("echo \"$(cat {note})\"", Form::kShell, Braces::kShell).error().what,
            "the value 'it's {here} $HOME \"x\"' of {note} cannot be quoted inside a command in double quotes");
  EXPECT_EQ(*fill_text("echo \"$(cat {lr})\"", Form::kShell, Braces::kShell), "echo \"$(cat 0.1)\"");
}

// What a shell line prints, without the last line end.
std::string shell_says(const std::string& line) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd out(ends[0]), in(ends[1]);
  ChildOptions options;
  options.argv = {"/bin/sh", "-c", line};
  options.standard_out = in.get();
  auto child = Child::spawn(options);
  EXPECT_TRUE(child);
  in.reset();
  std::string text;
  char bytes[4096];
  for (ssize_t n = 0; (n = read(out.get(), bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<std::size_t>(n));
  child->wait();
  return text;
}

TEST(Template, AnyValueSurvivesTheShellHoweverItIsQuoted) {
  std::mt19937 random(20261120);
  constexpr std::string_view kNasty = " '\"$`\\{}()!*?~#&|;<>%a\n=";
  for (int round = 0; round < 40; ++round) {
    std::string value;
    for (std::size_t i = random() % 12; i > 0; --i) value += kNasty[random() % kNasty.size()];
    const Parameters parameters{{"v", value}};
    const auto pieces = parse_template("printf '[%s]' {v} 'a{v}b' \"c{v}d\" \"$((1+1))\"", Braces::kShell);
    ASSERT_TRUE(pieces);
    const auto line = fill(*pieces, filling_of(parameters), Form::kShell);
    ASSERT_TRUE(line) << value;
    EXPECT_EQ(shell_says(fill_place(*line, {})), "[" + value + "][a" + value + "b][c" + value + "d][2]");
  }
}

TEST(Words, QuotesAndBlanksAsAShellHasThem) {
  EXPECT_EQ(*split_words(" a  'b c' \"d \\\" \\x\"e\\ f '' "),
            (std::vector<std::string>{"a", "b c", "d \" \\xe f", ""}));
  EXPECT_EQ(split_words("a 'b").error().what, "the ' at character 3 is not closed");
  EXPECT_TRUE(split_words("")->empty());
}

TEST(Words, SplittingIsTheInverseOfQuoting) {
  std::mt19937 random(7);
  constexpr std::string_view kNasty = " '\"$`\\{}\t\na";
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> words(1 + random() % 4);
    for (std::string& word : words)
      for (std::size_t i = random() % 8; i > 0; --i) word += kNasty[random() % kNasty.size()];
    EXPECT_EQ(*split_words(shell_join(words)), words);
  }
}

TEST(Words, AShellIsSparedOnlyWhereItDoesNothing) {
  EXPECT_EQ(*words_without_shell("python3 train.py --lr 0.1 'a b' --gpu {gpu}"),
            (std::vector<std::string>{"python3", "train.py", "--lr", "0.1", "a b", "--gpu", "{gpu}"}));
  for (const char* line : {"a | b", "a > f", "a; b", "X=1 a", "cd x", "a $X", "a \"$X\"", "a *.csv", "a ~/x", "a `b`",
                           "", "exit 3", "a {b,c}", "a 'b", "a # c", "(a)", "echo \\n"})
    EXPECT_FALSE(words_without_shell(line)) << line;
}

TEST(Program, IsWhatAlikeTasksHaveInCommon) {
  EXPECT_EQ(program_of({"python3", "-u", "src/train.py", "--lr", "1"}), "python3 train.py");
  EXPECT_EQ(program_of({"/usr/bin/python3.11", "-m", "pkg.train", "x"}), "python3.11 -m pkg.train");
  EXPECT_EQ(program_of({"./lightgbm", "config=a"}), "lightgbm");
  EXPECT_EQ(program_of({"CUDA_LAUNCH_BLOCKING=1", "./a.out"}), "a.out");
  EXPECT_EQ(program_of({"bin/", "x"}), "bin/");
  EXPECT_EQ(program_of({}), "command");
}

TEST(Environment, QuotesCommentsAndExport) {
  const auto variables = parse_environment(
      "\xEF\xBB\xBF# comment\n\nexport A=1\nB = two words  # trailing\nC='single # $A\nline'\nD=\"x\\ty\\\"z\" # c\r\n"
      "E=\nF=a#b\nG='{gpu}'",
      "x.env");
  ASSERT_TRUE(variables) << variables.error().what;
  EXPECT_EQ(*variables, (Environment{{"A", "1"},
                                     {"B", "two words"},
                                     {"C", "single # $A\nline"},
                                     {"D", "x\ty\"z"},
                                     {"E", ""},
                                     {"F", "a#b"},
                                     {"G", "{gpu}"}}));
}

TEST(Environment, ErrorsNameTheLine) {
  EXPECT_EQ(parse_environment("A=1\nB", "x.env").error().what, "x.env:2: no '='");
  EXPECT_EQ(parse_environment("1A=1", "x.env").error().what, "x.env:1: '1A' is no name of a variable");
  EXPECT_EQ(parse_environment("A='x\ny\n", "x.env").error().what, "x.env:1: the quote ' is not closed");
  EXPECT_EQ(parse_environment("A=1\nB=\"x\" y", "x.env").error().what, "x.env:2: 'y' after the closing quote");
}

}  // namespace
}  // namespace headroom::tasks

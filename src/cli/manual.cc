// SPDX-License-Identifier: Apache-2.0
#include "base/strings.h"
#include "cli/command_text.h"
#include "cli/verbs.h"

namespace headroom::cli {

namespace {

// Text of ours as roff reads it: hyphens that can be copied, no line that looks like a request.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (text.substr(i).starts_with("\u2026"))
      out += "\\[u2026]", i += 2;
    else
      out += c;
    line_begins = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff(text)); }

std::string literal(const std::vector<std::string>& lines) {
  std::string text = ".nf\n";
  for (const auto& line : lines) text += roff(line) + "\n";
  return text + ".fi\n";
}

std::string options_of(const std::vector<OptionText>& options) {
  std::string text;
  for (const auto& option : options) {
    std::string names;
    for (const auto& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
    if (!option.value.empty()) names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(option.value));
    text += fmt::format(".TP\n{}\n{}\n", names, roff(option.what));
  }
  return text;
}

// Paragraphs; a line that begins with a blank keeps its shape.
std::string notes_of(const std::string& notes) {
  std::string text;
  bool shaped = false;
  const auto shape = [&](bool wanted) {
    if (wanted != shaped) text += wanted ? ".nf\n" : ".fi\n";
    shaped = wanted;
  };
  if (!notes.empty()) text = ".PP\n";
  for (const auto line : split(notes, '\n')) {
    if (notes.empty()) break;
    if (line.empty()) {
      shape(false);
      text += ".PP\n";
    } else {
      shape(line.front() == ' ');
      text += roff(line) + "\n";
    }
  }
  shape(false);
  return text;
}

std::string section_of(const CommandText& command, std::string_view request) {
  std::string text = fmt::format(".{} \"{}\"\n{}.\n", request, roff(command.name), roff(command.summary));
  text += ".PP\n" + literal(command.usage);
  text += options_of(command.positionals) + options_of(command.options);
  text += notes_of(command.notes);
  if (!command.examples.empty()) text += ".PP\nExamples:\n.PP\n" + literal(command.examples);
  for (const auto& part : command.commands) text += section_of(part, "SS");
  return text;
}

}  // namespace

std::string manual_page() {
  std::string page = fmt::format(".TH HEADROOM 1 \"\" \"headroom {}\" \"User Commands\"\n", roff(HEADROOM_VERSION));
  page += ".SH NAME\nheadroom \\- where every GPU\\-second of your training went, and what to change\n";
  page += ".SH SYNOPSIS\n.B headroom\n.I VERB\n[OPTIONS] ...\n.SH DESCRIPTION\nThe verbs are:\n";
  for (const Verb& verb : verbs())
    if (!verb.hidden) page += fmt::format(".TP\n{}\n{}\n", bold(verb.name), roff(verb.summary));
  for (const Verb& verb : verbs())
    if (!verb.hidden) page += section_of(text_of(verb), "SH");
  page += fmt::format(".SH EXIT STATUS\n{}.\n", roff(kExitCodes));
  page +=
      ".SH FILES\n.TP\n.I $XDG_STATE_HOME/headroom\nrecordings, unless \\-\\-output or the configuration says "
      "otherwise; ~/.local/state/headroom where the variable is not set\n"
      ".TP\n.I $XDG_CONFIG_HOME/headroom/config.toml\ndefaults of options; ~/.config/headroom/config.toml where the "
      "variable is not set\n";
  return page;
}

Action declare_manual(VerbInput) {
  return [] {
    put(manual_page());
    return kExitOk;
  };
}

}  // namespace headroom::cli

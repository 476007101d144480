// SPDX-License-Identifier: Apache-2.0
// Real Python processes for tests: each program says "ready" when it is where it should be looked at.
#pragma once
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>

#include "base/fd.h"
#include "base/strings.h"
#include "python/process.h"

namespace headroom::python {

struct Interpreter {
  std::string program, version;  // "/usr/bin/python3", "3.11"
};

inline void PrintTo(const Interpreter& one, std::ostream* out) { *out << one.program; }

// What this machine has: Debian's, pyenv's, and those named in HEADROOM_TEST_PYTHONS (separated by colons).
inline std::vector<Interpreter> interpreters() {
  namespace fs = std::filesystem;
  std::vector<std::string> programs{"/usr/bin/python3"};
  const char* home = std::getenv("HOME");
  std::error_code error;
  for (const char* folder : {"/.pyenv/versions", "/.local/share/uv/python"})
    for (const auto& entry : fs::directory_iterator(std::string(home != nullptr ? home : "") + folder, error))
      programs.push_back(entry.path() / "bin/python3");
  if (const char* more = std::getenv("HEADROOM_TEST_PYTHONS"))
    for (const auto program : split(more, ':')) programs.emplace_back(program);
  std::vector<Interpreter> found;
  for (const std::string& program : programs) {
    std::FILE* const pipe =
        ::popen((program + " -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])' 2>/dev/null").c_str(), "r");
    char version[16] = {};
    const bool read = pipe != nullptr && std::fgets(version, sizeof version, pipe) != nullptr;
    if (pipe != nullptr) ::pclose(pipe);
    if (read) found.push_back({program, std::string(trim(version))});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.version.size() != b.version.size() ? a.version.size() < b.version.size() : a.version < b.version;
  });
  return found;
}

inline std::vector<Interpreter> readable_interpreters() {
  static const std::vector<Interpreter> all = interpreters();
  std::vector<Interpreter> readable;
  for (const Interpreter& one : all)
    if (one.version.starts_with("3.") && one.version != "3.6" && one.version != "3.7") readable.push_back(one);
  return readable;
}

// A program that runs until this is dropped.
class Program {
 public:
  Program(const std::string& python, const std::string& code, const std::string& argument = "") {
    int out[2];
    int in[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(in, O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(out[1], 1);
      ::dup2(in[0], 0);
      ::execl(python.c_str(), python.c_str(), "-c", code.c_str(), argument.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(out[1]);
    ::close(in[0]);
    out_ = Fd(out[0]);
    in_ = Fd(in[1]);
  }
  ~Program() { stop(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void stop() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // The next line that it prints; "" at the end.
  std::string line() {
    std::string text;
    char c = 0;
    while (::read(out_.get(), &c, 1) == 1 && c != '\n') text += c;
    return text;
  }
  // A line for its standard input.
  bool say(const std::string& text) { return ::write(in_.get(), (text + "\n").data(), text.size() + 1) > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  Fd out_, in_;
};

// "f", "Net.forward": the names of a stack, outermost first, without what follows them.
inline std::vector<std::string> names(const PythonProcess& process, const ThreadStack& stack) {
  std::vector<std::string> texts;
  for (const CodeId id : *stack.frames) {
    const std::string& text = process.text(id);
    texts.push_back(text.substr(0, text.rfind(" (")));
  }
  return texts;
}

// "Net.forward" is "forward" where code objects do not know their class.
inline std::string name_in(const Interpreter& python, const std::string& qualified) {
  return python.version == "3.8" || python.version == "3.9" || python.version == "3.10"
             ? qualified.substr(qualified.rfind('.') + 1)
             : qualified;
}

}  // namespace headroom::python

// SPDX-License-Identifier: Apache-2.0
#include "cli/top_terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdlib>
#include <map>
#include <string>

#include "cli/environment.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
// What is a macro even so.
#undef lines
#undef columns

namespace headroom::cli {

using screen::Colour;

struct Terminal::Impl {
  SCREEN* screen = nullptr;
  winsize size{};  // as the terminal said it last
  int colours = 0;
  std::map<std::pair<int, int>, int> pairs;
};

namespace {

// Whoever holds the other end of a terminal may say that it has 65,535 rows; ncurses counts in shorts.
constexpr int kMostRows = 1000, kMostColumns = 1000;
constexpr const char* kFallback = "xterm-256color";
// Terminals that speak as xterm does and whose entry ncurses-base lacks.
constexpr std::array kLikeXterm{"xterm-", "alacritty", "foot", "wezterm", "contour", "rio"};

bool is_known(const std::string& name) {
  int found = 0;
  return ::setupterm(name.c_str(), STDOUT_FILENO, &found) == 0;
}

bool is_like_xterm(const std::string& name) {
  return std::any_of(kLikeXterm.begin(), kLikeXterm.end(), [&](const char* begin) { return name.starts_with(begin); });
}

// The name by which terminfo knows the terminal.
Result<std::string> terminfo_name() {
  const std::string name = environment("TERM").value_or("");
  const auto plain = "what follows is one picture as text; headroom top --once prints it without this note";
  if (name.empty() || name == "dumb")
    return fail(Errc::kUnsupported,
                name.empty() ? "TERM is not set, so nothing can be painted here" : "this terminal is dumb (TERM=dumb)",
                plain);
  std::string known = name;
  if (!is_known(name)) {
    if (!is_like_xterm(name) || !is_known(kFallback))
      return fail(Errc::kUnsupported, fmt::format("terminfo has no entry for this terminal (TERM={})", name), plain);
    known = kFallback;
  }
  char move_to[] = "cup";  // a capability of texts: tigetstr() gives it, or a null pointer where there is none
  if (::tigetstr(move_to) == nullptr)
    return fail(Errc::kUnsupported, fmt::format("this terminal cannot move its cursor (TERM={})", name), plain);
  return known;
}

// Whether the C library writes UTF-8 here; where the locale that is asked for is not installed, by C.UTF-8.
bool set_utf8_locale() {
  for (const char* name : {"", "C.UTF-8"})
    if (std::setlocale(LC_CTYPE, name) != nullptr && MB_CUR_MAX > 1) return true;
  return false;
}

short number_of(Colour colour, int colours) {
  if (const auto number = static_cast<short>(colour); number >= screen::kFirstOfPalette) return number;
  constexpr std::array<short, 9> kNumbers{-1,         COLOR_BLACK,   COLOR_RED,  COLOR_GREEN, COLOR_YELLOW,
                                          COLOR_BLUE, COLOR_MAGENTA, COLOR_CYAN, COLOR_WHITE};
  constexpr short kBrightBlack = 8;
  return colour == Colour::kGrey && colours >= 16 ? kBrightBlack : kNumbers[static_cast<std::size_t>(colour)];
}

using Kind = screen::Key::Kind;
const std::map<int, Kind>& kinds_of_keys() {
  static const std::map<int, Kind> kinds{{KEY_UP, Kind::kUp},
                                         {KEY_DOWN, Kind::kDown},
                                         {KEY_LEFT, Kind::kLeft},
                                         {KEY_RIGHT, Kind::kRight},
                                         {KEY_PPAGE, Kind::kPageUp},
                                         {KEY_NPAGE, Kind::kPageDown},
                                         {KEY_HOME, Kind::kHome},
                                         {KEY_END, Kind::kEnd},
                                         {KEY_ENTER, Kind::kEnter},
                                         {'\n', Kind::kEnter},
                                         {'\r', Kind::kEnter},
                                         {27, Kind::kEscape},
                                         {KEY_BACKSPACE, Kind::kBackspace},
                                         {127, Kind::kBackspace},
                                         {8, Kind::kBackspace},
                                         {'\t', Kind::kTab}};
  return kinds;
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(screen::Look wanted) {
  ::use_env(false);  // the size is asked for here, before it is believed
  HR_TRY(const std::string name, terminfo_name());
  std::unique_ptr<Terminal> terminal(new Terminal);
  terminal->impl_ = std::make_unique<Impl>();
  terminal->look_ = wanted;
  terminal->look_.utf8 = wanted.utf8 && set_utf8_locale();
  terminal->impl_->screen = ::newterm(name.c_str(), stdout, stdin);
  if (terminal->impl_->screen == nullptr)
    return fail(Errc::kUnsupported, fmt::format("ncurses cannot use this terminal (TERM={})", name),
                "headroom top --once prints one picture as text");
  ::cbreak();
  ::noecho();
  ::nonl();
  ::curs_set(0);
  ::keypad(stdscr, true);
  ::nodelay(stdscr, true);
  ::set_escdelay(25);
  ::mouseinterval(0);  // a press counts at once, and nothing waits for a second one
  ::mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, nullptr);
  terminal->look_.colour = wanted.colour && ::has_colors() && ::start_color() == OK && COLORS >= 8;
  if (terminal->look_.colour) ::use_default_colors();
  terminal->impl_->colours = COLORS;
  terminal->look_.palette = terminal->look_.colour && COLORS >= 256;
  (void)terminal->follow_size();
  return terminal;
}

Terminal::~Terminal() {
  if (!impl_ || impl_->screen == nullptr) return;
  ::endwin();
  ::delscreen(impl_->screen);
}

screen::Size Terminal::size() const {
  return {static_cast<std::size_t>(std::max(1, getmaxx(stdscr))),
          static_cast<std::size_t>(std::max(1, getmaxy(stdscr)))};
}

int Terminal::pair_of(Colour ink, Colour ground) {
  const std::pair<int, int> colours{number_of(ink, impl_->colours), number_of(ground, impl_->colours)};
  const auto known = impl_->pairs.find(colours);
  if (known != impl_->pairs.end()) return known->second;
  const int next = static_cast<int>(impl_->pairs.size()) + 1;
  if (next >= COLOR_PAIRS || ::init_extended_pair(next, colours.first, colours.second) == ERR) return 0;
  impl_->pairs.emplace(colours, next);
  return next;
}

// Cells of one style, from `column` on.
void Terminal::put(int row, int column, const std::string& text, const screen::Style& style) {
  attr_t attributes = A_NORMAL;
  if (style.bold) attributes |= A_BOLD;
  if (style.faint) attributes |= A_DIM;
  if (style.reverse) attributes |= A_REVERSE;
  const int pair = look_.colour ? pair_of(style.ink, style.ground) : 0;
  ::wattr_set(stdscr, attributes, static_cast<short>(pair), nullptr);
  ::mvwaddnstr(stdscr, row, column, text.c_str(), static_cast<int>(text.size()));
}

void Terminal::put_line(std::size_t row, const screen::Line& line) {
  ::wmove(stdscr, static_cast<int>(row), 0);
  ::wattr_set(stdscr, A_NORMAL, 0, nullptr);
  ::wclrtoeol(stdscr);
  std::size_t used = line.size();
  while (used > 0 && line[used - 1] == screen::Cell{}) --used;
  for (std::size_t begin = 0, end = 0; begin < used; begin = end) {
    std::string text;
    for (; end < used && line[end].style == line[begin].style; ++end) text += line[end].letter;
    put(static_cast<int>(row), static_cast<int>(begin), text, line[begin].style);
  }
}

// Only rows that are not what they were.
void Terminal::draw(screen::Picture picture) {
  const std::vector<screen::Line>& lines = picture.lines;
  const bool anew = painted_.lines.size() != lines.size() || lines.empty() ||
                    painted_.lines.front().size() != lines.front().size();  // another size
  if (anew) ::werase(stdscr);
  for (std::size_t row = 0; row < lines.size(); ++row)
    if (anew || lines[row] != painted_.lines[row]) put_line(row, lines[row]);
  ::wattr_set(stdscr, A_NORMAL, 0, nullptr);
  ::wrefresh(stdscr);
  painted_ = std::move(picture);
}

void Terminal::draw_head(std::vector<screen::Line> lines) {
  for (std::size_t row = 0; row < std::min(lines.size(), painted_.lines.size()); ++row) {
    if (lines[row] == painted_.lines[row]) continue;
    put_line(row, lines[row]);
    painted_.lines[row] = std::move(lines[row]);
  }
  ::wattr_set(stdscr, A_NORMAL, 0, nullptr);
  ::wrefresh(stdscr);
}

Terminal::Event Terminal::mouse_event(screen::Key& key) const {
  MEVENT event{};
  if (::getmouse(&event) != OK) return Event::kResized;
  const auto line = static_cast<std::size_t>(std::max(0, event.y));
  key = {};
  if ((event.bstate & BUTTON4_PRESSED) != 0)
    key.kind = Kind::kWheelUp;
  else if ((event.bstate & BUTTON5_PRESSED) != 0)
    key.kind = Kind::kWheelDown;
  else if ((event.bstate & BUTTON1_PRESSED) != 0 && line < painted_.spots.size())
    key = {Kind::kClick, 0, painted_.spots[line]};
  else
    return Event::kResized;  // nothing of ours: look again
  return Event::kKey;
}

// Whether it has changed. A terminal that does not say its size has the one that terminfo gives it.
bool Terminal::follow_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return false;
  if (size.ws_row == impl_->size.ws_row && size.ws_col == impl_->size.ws_col) return false;
  impl_->size = size;
  ::resize_term(std::min<int>(size.ws_row, kMostRows), std::min<int>(size.ws_col, kMostColumns));
  paint_all();
  return true;
}

// The next picture, whatever is believed to stand there.
void Terminal::paint_all() {
  painted_ = {};
  ::clearok(stdscr, true);
}

Terminal::Event Terminal::next_event(screen::Key& key) {
  if (follow_size()) return Event::kResized;
  wint_t code = 0;
  const int kind = ::wget_wch(stdscr, &code);
  if (kind == ERR) return Event::kNothing;
  if (kind == KEY_CODE_YES && code == KEY_MOUSE) return mouse_event(key);
  const auto known = kinds_of_keys().find(static_cast<int>(code));
  if (known != kinds_of_keys().end()) {
    key = {known->second};
    return Event::kKey;
  }
  if (kind == KEY_CODE_YES || code < ' ' || code > '~') return Event::kResized;  // nothing of ours: look again
  key = screen::letter(static_cast<char>(code));
  return Event::kKey;
}

Terminal::Event Terminal::wait(Nanos time, const Signals& signals, screen::Key& key) {
  if (const Event event = next_event(key); event != Event::kNothing) return event;
  std::array<pollfd, 2> fds{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals.fd(), POLLIN, 0}};
  const auto milliseconds = static_cast<int>(std::clamp<Nanos>(time / kMillisecond, 0, 60'000));
  const int ready = ::poll(fds.data(), fds.size(), milliseconds);
  if (ready < 0) {  // another size, be it for a moment, or stopped and gone on: what stood there may be gone
    (void)follow_size();
    paint_all();
    return Event::kResized;
  }
  if (ready > 0 && fds[1].revents != 0) return Event::kEnded;
  if (ready > 0 && (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return Event::kEnded;  // it is gone
  return next_event(key);
}

}  // namespace headroom::cli

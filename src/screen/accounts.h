// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <span>
#include <string_view>

#include "base/enum_table.h"
#include "screen/canvas.h"
#include "view/strip.h"

// Accounts as a terminal shows them: by colour and block where it has both, else by a letter.
namespace headroom::screen {

struct AccountLook {
  Account id;
  char letter;  // no two are alike
  Colour ink;   // of the terminal's own, shared by accounts that seldom stand beside each other
  Colour own;   // of xterm's palette: near to that of the report's dark page, and no other's
};
inline constexpr std::array kAccountLooks{
    AccountLook{Account::kUseful, '#', Colour::kGreen, Colour{36}},
    AccountLook{Account::kDiscarded, 'x', Colour::kMagenta, Colour{175}},
    AccountLook{Account::kUnderWay, '+', Colour::kCyan, Colour{115}},
    AccountLook{Account::kForeign, 'o', Colour::kMagenta, Colour{75}},
    AccountLook{Account::kStartup, 's', Colour::kBlue, Colour{221}},
    AccountLook{Account::kInput, 'i', Colour::kYellow, Colour{208}},
    AccountLook{Account::kHostCode, 'h', Colour::kRed, Colour{214}},
    AccountLook{Account::kTransfer, 'c', Colour::kCyan, Colour{74}},
    AccountLook{Account::kSync, 'y', Colour::kMagenta, Colour{104}},
    AccountLook{Account::kPeers, 'p', Colour::kBlue, Colour{137}},
    AccountLook{Account::kCheckpoint, 'w', Colour::kMagenta, Colour{131}},
    AccountLook{Account::kValidationHost, 'v', Colour::kCyan, Colour{169}},
    AccountLook{Account::kTeardown, 't', Colour::kBlue, Colour{186}},
    AccountLook{Account::kHung, 'H', Colour::kRed, Colour{160}},
    AccountLook{Account::kStopped, 'z', Colour::kRed, Colour{167}},
    AccountLook{Account::kUnexplained, 'u', Colour::kWhite, Colour{247}},
    AccountLook{Account::kTaskWaiting, 'q', Colour::kYellow, Colour{255}},
    AccountLook{Account::kNotUsed, '-', Colour::kGrey, Colour{243}},
    AccountLook{Account::kNoTask, '.', Colour::kGrey, Colour{239}},
    AccountLook{Account::kUnobserved, '?', Colour::kGrey, Colour{236}},
};
static_assert(in_order_of_ids(kAccountLooks));
[[nodiscard]] inline const AccountLook& look_of(Account account) {
  return kAccountLooks[static_cast<std::size_t>(account)];
}

// The accounts of a stretch of time as a bar in one row of `columns` cells.
void put_bar(Canvas& canvas, std::size_t row, std::size_t column, std::size_t columns,
             std::span<const view::Share> shares);

// Accounts over time: a column of cells for each bin, `rows` high, the busy ones at the bottom.
void put_strip(Canvas& canvas, std::size_t row, std::size_t column, std::size_t rows, const view::Strip& strip);

// "█ computing 61 %  █ input 31 %", the largest first, in one row; what finds no room is counted.
// `unexplained`: what to say of it where it means something else.
void put_legend(Canvas& canvas, std::size_t row, std::span<const view::Share> shares,
                std::string_view unexplained = info(Account::kUnexplained).label);

}  // namespace headroom::screen

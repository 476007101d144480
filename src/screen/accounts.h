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
  Colour ink;   // shared by accounts that seldom stand beside each other
};
inline constexpr std::array kAccountLooks{
    AccountLook{Account::kUseful, '#', Colour::kGreen},       AccountLook{Account::kDiscarded, 'x', Colour::kMagenta},
    AccountLook{Account::kUnderWay, '+', Colour::kCyan},      AccountLook{Account::kForeign, 'o', Colour::kMagenta},
    AccountLook{Account::kStartup, 's', Colour::kBlue},       AccountLook{Account::kInput, 'i', Colour::kYellow},
    AccountLook{Account::kHostCode, 'h', Colour::kRed},       AccountLook{Account::kTransfer, 'c', Colour::kCyan},
    AccountLook{Account::kSync, 'y', Colour::kMagenta},       AccountLook{Account::kPeers, 'p', Colour::kBlue},
    AccountLook{Account::kCheckpoint, 'w', Colour::kMagenta}, AccountLook{Account::kValidationHost, 'v', Colour::kCyan},
    AccountLook{Account::kTeardown, 't', Colour::kBlue},      AccountLook{Account::kHung, 'H', Colour::kRed},
    AccountLook{Account::kStopped, 'z', Colour::kRed},        AccountLook{Account::kUnexplained, 'u', Colour::kWhite},
    AccountLook{Account::kTaskWaiting, 'q', Colour::kYellow}, AccountLook{Account::kNotUsed, '-', Colour::kGrey},
    AccountLook{Account::kNoTask, '.', Colour::kGrey},        AccountLook{Account::kUnobserved, '?', Colour::kGrey},
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

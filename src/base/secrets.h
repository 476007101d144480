// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

// Keeps secrets out of what Headroom writes. The one rule (docs/privacy.md):
// - A name is secret that contains KEY, TOKEN, SECRET, PASS or CREDENTIAL, in capitals or not. Words of the field that
//   merely contain one (tokenizer, keypoint, keyword, passes, …) are taken out of the name first.
// - The value of a secret name is hidden, but for plain numbers of up to 12 characters behind KEY and TOKEN
//   (--max-tokens 512), for yes, no, true, false, on, off and none, and for nothing at all.
// - Whatever its name, a word is hidden that begins as the tokens of well-known services do (ghp_, hf_, sk-, AKIA, …)
// and
//   has 16 letters and digits in a row behind that.
// - In a command, a value is what follows NAME= or NAME: in a word, and the word after an option without "=" (--token
//   VALUE). Words within an argument with blanks (sh -c '…') count, too. Of a URL with a password (scheme://user:pass@)
//   the password is hidden.
namespace headroom {

inline constexpr std::string_view kHidden = "***";

[[nodiscard]] bool is_secret_name(std::string_view name);
// Whether a word within `text` is such a token.
[[nodiscard]] bool holds_known_token(std::string_view text);
// Whether `value` is to be hidden where it stands behind `name`.
[[nodiscard]] bool is_secret(std::string_view name, std::string_view value);

[[nodiscard]] std::vector<std::string> hide_secrets(const std::vector<std::string>& argv);
// Of a command as one text, such as a shell line or a quoted argv.
[[nodiscard]] std::string hide_secrets(std::string_view command);
// Of any text, such as a line of output: known tokens, and passwords in URLs. What stands behind a name is left alone:
// "KeyError: 'lr'" is no secret.
[[nodiscard]] std::string hide_known_secrets(std::string_view text);

// "***" and 8 hex digits: says whether a hidden value is another one than before. The salt keeps two recordings from
// being compared, 32 bits from telling the value.
[[nodiscard]] std::string hidden_value(std::string_view value, std::string_view salt);

}  // namespace headroom

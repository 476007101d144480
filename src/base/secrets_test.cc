// SPDX-License-Identifier: Apache-2.0
#include "base/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom {
namespace {

using Words = std::vector<std::string>;

TEST(Secrets, NamesAreKnownByFiveWords) {
  for (const char* name : {"WANDB_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "password", "--db-passwd",
                           "PGPASSWORD", "google_credentials", "apiKey", "PassPhrase", "SSH_KEYS"})
    EXPECT_TRUE(is_secret_name(name)) << name;
  for (const char* name : {"PATH", "--lr", "TOKENIZERS_PARALLELISM", "--tokenizer", "keypoints", "--passes",
                           "--bypass-cache", "keyword_args", "monkeypatch", ""})
    EXPECT_FALSE(is_secret_name(name)) << name;
  EXPECT_TRUE(is_secret_name("tokenizer_api_key"));
}

TEST(Secrets, NumbersBehindKeyAndTokenStay) {
  EXPECT_FALSE(is_secret("--max-tokens", "512"));
  EXPECT_FALSE(is_secret("token_dropout", "1e-3"));
  EXPECT_FALSE(is_secret("key_dim", "123456789012"));
  EXPECT_TRUE(is_secret("key_dim", "1234567890123"));
  EXPECT_TRUE(is_secret("--password", "1234"));
  EXPECT_FALSE(is_secret("--use-token", "True"));
  EXPECT_FALSE(is_secret("HF_TOKEN", ""));
  EXPECT_TRUE(is_secret("HF_TOKEN", "hf_abc"));
}

TEST(Secrets, ArgumentsAreHiddenByWhatNamesThem) {
  EXPECT_EQ(hide_secrets(Words{"train.py", "--lr", "0.1", "--token", "hf_1", "--password=x", "wandb.api_key=abc"}),
            (Words{"train.py", "--lr", "0.1", "--token", "***", "--password=***", "wandb.api_key=***"}));
  EXPECT_EQ(hide_secrets(Words{"env", "HF_TOKEN=hf_1", "python3", "train.py", "--max-tokens", "512"}),
            (Words{"env", "HF_TOKEN=***", "python3", "train.py", "--max-tokens", "512"}));
  EXPECT_EQ(hide_secrets(Words{"x", "--use-token", "--lr", "1", "--token"}),
            (Words{"x", "--use-token", "--lr", "1", "--token"}));
  EXPECT_EQ(hide_secrets(Words{"x", "--password", "two words", "--password=two words"}),
            (Words{"x", "--password", "***", "--password=***"}));
  EXPECT_EQ(hide_secrets(Words{"x", "--tokenizer", "gpt2", "token.json"}),
            (Words{"x", "--tokenizer", "gpt2", "token.json"}));
}

TEST(Secrets, WordsOfAShellLineAreLookedAt) {
  EXPECT_EQ(hide_secrets(Words{"sh", "-c", "WANDB_API_KEY=abc python3 t.py --token 'a b' --lr 1 && x"}),
            (Words{"sh", "-c", "WANDB_API_KEY=*** python3 t.py --token *** --lr 1 && x"}));
  EXPECT_EQ(hide_secrets("sh -c 'HF_TOKEN=abc exec x' --password=\"a b\" -v"),
            "sh -c 'HF_TOKEN=*** exec x' --password=*** -v");
  EXPECT_EQ(hide_secrets("python3 '--password=a b' --lr 1"), "python3 '--password=***' --lr 1");
  EXPECT_EQ(hide_secrets(Words{"curl", "-H", "X-Api-Key: abc def"}), (Words{"curl", "-H", "X-Api-Key: *** def"}));
}

TEST(Secrets, PasswordsInUrlsAreHidden) {
  EXPECT_EQ(hide_secrets(Words{"--db", "postgres://me:pw@host/db?a=b"}),
            (Words{"--db", "postgres://me:***@host/db?a=b"}));
  EXPECT_EQ(hide_secrets("git clone https://u:t@h/r"), "git clone https://u:***@h/r");
  EXPECT_EQ(hide_secrets("curl https://host:8080/a@b"), "curl https://host:8080/a@b");
}

TEST(Secrets, TokensOfKnownServicesAreKnownByThemselves) {
  const std::string token = "hf_AbCdEfGhIjKlMnOpQrStUv";
  EXPECT_TRUE(is_secret("RUN_NAME", token));
  EXPECT_EQ(hide_secrets(Words{"train.py", token, "--hub", token, "a=" + token}),
            (Words{"train.py", "***", "--hub", "***", "a=***"}));
  EXPECT_EQ(hide_secrets("curl https://host/x?t=ghp_0123456789abcdefABCDEF&b=1"), "curl https://host/x?t=***&b=1");
  for (const char* text : {"hf_model", "hf_bert-base-uncased-finetuned-squad.json", "sk-learn", "AKIA", "eyJ.txt"})
    EXPECT_EQ(hide_secrets(text), text);
}

TEST(Secrets, OfALineOfOutputOnlyWhatIsKnownByItselfIsHidden) {
  EXPECT_EQ(hide_known_secrets("401 for hf_AbCdEfGhIjKlMnOpQrStUv: denied"), "401 for ***: denied");
  EXPECT_EQ(hide_known_secrets("cannot reach postgres://me:pw@host/db (refused)"),
            "cannot reach postgres://me:***@host/db (refused)");
  for (const char* text : {"", "KeyError: 'lr'", "wrong token: 5", "TokenError: see https://host:8080/a@b"})
    EXPECT_EQ(hide_known_secrets(text), text);
}

TEST(Secrets, WhatIsNoSecretIsNotTouched) {
  for (const char* text :
       {"", "  python3  train.py\t--lr 1 ", "bash -c 'echo \"a  b\" | wc'", "a'b", "\\", "x \"unclosed"})
    EXPECT_EQ(hide_secrets(text), text);
  EXPECT_EQ(hide_secrets(Words{"", " ", "a b"}), (Words{"", " ", "a b"}));
}

TEST(Secrets, AHiddenValueTellsOnlyWhetherItChanged) {
  EXPECT_EQ(hidden_value("abc", "salt"), hidden_value("abc", "salt"));
  EXPECT_NE(hidden_value("abc", "salt"), hidden_value("abd", "salt"));
  EXPECT_NE(hidden_value("abc", "salt"), hidden_value("abc", "other"));
  EXPECT_THAT(hidden_value("abc", "salt"), testing::MatchesRegex(R"(\*\*\*[0-9a-f]+)"));
  EXPECT_EQ(hidden_value("", "").size(), 11U);
}

}  // namespace
}  // namespace headroom

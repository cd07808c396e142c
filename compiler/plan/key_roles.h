// What a setting that the lowering does not read means for a run by Capstan: a table over the training
// config's keys, by name or prefix. A key of the schema is read, refused, or stands in the table; a test
// holds that.
#pragma once

#include <string_view>
#include <vector>

namespace capstan::plan {

enum class KeyRole {
  decided,     ///< how the framework computes, stores or sends; Capstan's runtime decides that itself
  of_absent,   ///< detail of a feature that is off here or refused by another key
  not_done,    ///< asks for something beside the training that a run by Capstan does not do
  translated,  ///< the framework's rewrites carry the value to the key that is read
};

struct KeyRow {
  std::string_view key;  ///< "train.eval_iters", or a prefix that ends in `*`: "logger.*"
  KeyRole role;
  std::string_view subject;  ///< of `not_done`: what is not done ("evaluation"); else why it does not matter
};

/// Sorted by key; a longer row wins over a shorter prefix.
const std::vector<KeyRow>& key_rows();
/// The row of a key, or null.
const KeyRow* find_key_row(std::string_view path);

}  // namespace capstan::plan

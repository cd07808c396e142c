// Wanted key changes -> text edits on the TOML files in which the values are set. Comments, order, quoting
// and layout stay byte for byte elsewhere; a missing key goes into its table (made at the end of the checked
// file when there is none); lists gain and lose single elements. A value from `extends` is edited in that
// file. What no file edit can reach is said in words.
#pragma once

#include <string>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/diagnostics/diagnostic.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct KeyChange {
  enum class Kind {
    set,     ///< the key gets `value`; none (which TOML cannot write) means unset
    unset,   ///< no file says anything about the key; its default holds
    add,     ///< `value` becomes an element of the list (or comma-separated string), if it is none yet
    remove,  ///< and no element any more
    rename,  ///< the key becomes `new_path` with its value as it is
    /// The table `path` goes from every file in which the other changes leave no key in it. Comments stay;
    /// those above and behind its header go with the first key that moves out of it.
    drop_table
  };
  Kind kind = Kind::set;
  std::string path;
  Value value;
  std::string new_path;
  bool keep_comment = false;  ///< of unset: what is written behind the value stays as a line of its own
};

struct EditPlan {
  std::vector<Edit> edits;  ///< sorted by source and place, not overlapping
  /// Changes that no edit reaches, as clauses: "pass `model.x=true` to `--set` instead of `model.x=false`".
  std::vector<std::string> by_hand;
  bool complete() const { return by_hand.empty(); }
};

/// Changes are applied in order; several for one key become one edit. Nothing to do gives an empty plan.
EditPlan plan_edits(const std::vector<KeyChange>& changes, const Config& config, const SourceMap& sources);

/// The value a list key has after `add` or `remove`; a string of comma-separated tokens stays one.
Value with_element(const Value& list, const Value& element);
Value without_element(const Value& list, const Value& element);

}  // namespace capstan

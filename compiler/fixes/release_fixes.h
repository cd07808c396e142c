// Problems of keys and values that the release does not have -> ways out: the key's name there with what is
// spelt otherwise beside it, the word that was meant, or the config without it. Each way was judged again as
// if the file had been read anew: a rule that the problem kept silent is met too, by further changes where
// need be; a mere guess at a name stays, with what would then be found.
#pragma once

#include <vector>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/fixes/edit.h"
#include "compiler/solve/check.h"

namespace capstan {

/// To the problems that the sink holds; to twenty of them at most, which is enough for people.
void add_release_fixes(const CheckRequest& request, Judgement& judgement, const CheckOptions& options,
                       Sink& sink);

/// The config after the changes; what binding said about the old one is kept.
Config with_key_changes(const Config& config, const std::vector<KeyChange>& changes);

}  // namespace capstan

// Config and facts -> ModelSpec. What the runtime cannot do is refused at the key that asks for it (LW001); a
// key that is missing or has no meaning is reported (LW002, LW003); settings that make no difference to
// Capstan's runtime are listed in one hint (LW007). Nothing the user set is passed over in silence.
#pragma once

#include <optional>
#include <string>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/facts/facts.h"
#include "compiler/plan/model_spec.h"
#include "compiler/schema/schema.h"
#include "grammar/source/source_file.h"

namespace capstan::plan {

struct BindRequest {
  const Config& config;
  const SchemaView& schema;
  const Facts* final_facts = nullptr;  ///< after evaluation (rewrites applied); null: the config as it is
  std::string config_name;             ///< file name without folder
  std::string producer;                ///< "capstan 0.1.0"
  const SourceMap* sources =
      nullptr;  ///< for paths relative to the file that names them; null: taken as they are
};

/// Nothing when an error was reported.
std::optional<ModelSpec> bind_model(const BindRequest& request, Sink& sink);

/// SHA-256 over every setting of the config (path and value, sorted) and the stack's name.
std::string config_digest(const Config& config, const Stack& stack);

}  // namespace capstan::plan

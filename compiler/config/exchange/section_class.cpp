#include "compiler/config/exchange/section_class.h"

#include <map>

namespace capstan {

bool has_defaults_of_section(std::string_view section, std::string_view class_name) {
  static const std::map<std::string_view, std::string_view> classes = {
      {"checkpoint", "CheckpointConfig"},
      {"comm_overlap", "CommOverlapConfig"},
      {"dataset", "GPTDatasetConfig"},
      {"ddp", "DistributedDataParallelConfig"},
      {"dist", "DistributedInitConfig"},
      {"ft", "FaultToleranceConfig"},
      {"inprocess_restart", "InProcessRestartConfig"},
      {"logger", "LoggerConfig"},
      {"mixed_precision", "MixedPrecisionConfig"},
      {"model", "GPTModelProvider"},
      {"nvrx_straggler", "NVRxStragglerDetectionConfig"},
      {"optimizer", "OptimizerConfig"},
      {"optimizer_config_override_provider", "OptimizerConfigOverrideProvider"},
      {"profiling", "ProfilingConfig"},
      {"rerun_state_machine", "RerunStateMachineConfig"},
      {"rng", "RNGConfig"},
      {"scheduler", "SchedulerConfig"},
      {"straggler", "StragglerDetectionConfig"},
      {"tensor_inspect", "TensorInspectConfig"},
      {"tokenizer", "TokenizerConfig"},
      {"train", "TrainingConfig"},
      {"validation", "ValidationConfig"}};
  const auto known = classes.find(section);
  return known != classes.end() && known->second == class_name.substr(class_name.rfind('.') + 1);
}

}  // namespace capstan

#include <fmt/format.h>

#include <algorithm>

#include "compiler/plan/binding.h"

namespace capstan::plan {
namespace {

constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
/// Tokens of one micro-batch; positions of an activation matrix fit into 32 bits with room.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 26;

struct Batch {
  std::int64_t global = 1;
};

Batch bind_batch(EffectiveConfig& config, ModelSpec& spec) {
  Dims& dims = spec.dims;
  const auto micro = config.integer("train.micro_batch_size", 1, kMostBatch);
  if (!micro) config.require("train.micro_batch_size", "sequences of a micro-batch");
  dims.micro_batch = micro.value_or(1);
  Batch batch;
  batch.global = config.integer("train.global_batch_size", 1, kMostBatch, dims.micro_batch);
  if (batch.global % dims.micro_batch != 0) {
    config.problem("LW003", "train.global_batch_size",
                   fmt::format("a global batch of {} sequences is no multiple of the micro-batch of {}",
                               batch.global, dims.micro_batch));
  }
  dims.micro_batches = std::max<std::int64_t>(1, batch.global / dims.micro_batch);
  if (dims.tokens() > kMostTokens) {
    config.problem("LW003", "train.micro_batch_size",
                   fmt::format("{} tokens in a micro-batch are more than a plan can hold ({})", dims.tokens(),
                               kMostTokens));
  }
  return batch;
}

/// Steps of the whole training, which the learning-rate schedule refers to.
std::int64_t bind_steps(EffectiveConfig& config, ModelSpec& spec, const Batch& batch) {
  const auto iterations = config.integer("train.train_iters", 1, kMostSteps);
  const auto samples = config.integer("train.train_samples", 1, kMostSteps);
  std::int64_t steps = iterations.value_or(0);
  if (!iterations && samples) steps = *samples / batch.global;
  if (!iterations && samples && steps == 0) {
    config.problem("LW003", "train.train_samples",
                   fmt::format("`train.train_samples = {}` is less than a global batch of {} sequences: the "
                               "training has no step",
                               *samples, batch.global),
                   fmt::format("give {} or more samples", batch.global));
    steps = 1;
  } else if (steps == 0 && !iterations && config.was_refused("train.train_samples")) {
    steps = 1;
  } else if (steps == 0) {
    config.require("train.train_iters", "steps of the training");
    steps = 1;
  }
  const auto limit = config.integer("execute.steps", 1, kMostSteps);
  spec.schedule.train_steps = limit ? std::min(*limit, steps) : steps;
  spec.schedule.save_every = config.integer("checkpoint.save_interval", 0, kMostSteps, 0);
  spec.schedule.log_every = config.integer("logger.log_interval", 1, kMostSteps, 1);
  return steps;
}

void bind_optimizer(EffectiveConfig& config, ModelSpec& spec) {
  OptimizerSpec& optimizer = spec.optimizer;
  const std::string name = config.text("optimizer.optimizer", "adam");
  if (name != "adam") {
    config.problem("LW001", "optimizer.optimizer", fmt::format("the runtime has no optimizer `{}`", name),
                   "use `adam`");
  }
  if (!config.boolean("optimizer.decoupled_weight_decay", true)) {
    config.problem("LW001", "optimizer.decoupled_weight_decay",
                   "the runtime has Adam with decoupled weight decay only",
                   "set `optimizer.decoupled_weight_decay = true`");
  }
  const auto rate = config.number("optimizer.lr", 0, 1e6);
  if (!rate) config.require("optimizer.lr", "the highest learning rate");
  optimizer.max_lr = rate.value_or(0);
  optimizer.min_lr = config.number("optimizer.min_lr", 0, 1e6, 0);
  if (rate && optimizer.min_lr > optimizer.max_lr) {
    config.problem("LW003", "optimizer.min_lr",
                   fmt::format("the lowest learning rate, {}, is above the highest, `optimizer.lr = {}`",
                               optimizer.min_lr, optimizer.max_lr),
                   "lower `optimizer.min_lr`, or raise `optimizer.lr`");
  }
  // beta = 1 would never learn and divides by zero in the bias correction.
  constexpr double kMostBeta = 0.9999999;
  optimizer.beta1 = config.number("optimizer.adam_beta1", 0, kMostBeta, 0.9);
  optimizer.beta2 = config.number("optimizer.adam_beta2", 0, kMostBeta, 0.999);
  optimizer.eps = config.number("optimizer.adam_eps", 0, 1, 1e-8);
  optimizer.weight_decay = config.number("optimizer.weight_decay", 0, 1e3, 0.01);
  optimizer.clip_grad = config.number("optimizer.clip_grad", 0, 1e30, 1.0);
}

void bind_rate_schedule(EffectiveConfig& config, ModelSpec& spec, const Batch& batch,
                        std::int64_t total_steps) {
  OptimizerSpec& optimizer = spec.optimizer;
  optimizer.decay_style = config.text("scheduler.lr_decay_style", "linear");
  if (optimizer.decay_style == "WSD") {
    config.problem("LW001", "scheduler.lr_decay_style", "the runtime has no warmup-stable-decay schedule yet",
                   "use `constant`, `linear`, `cosine` or `inverse-square-root`");
  } else if (optimizer.decay_style != "constant" && optimizer.decay_style != "linear" &&
             optimizer.decay_style != "cosine" && optimizer.decay_style != "inverse-square-root") {
    config.problem("LW003", "scheduler.lr_decay_style",
                   fmt::format("there is no decay style `{}`", optimizer.decay_style),
                   "use `constant`, `linear`, `cosine` or `inverse-square-root`");
  }
  // Bridge counts in samples (config.py, _calculate_scheduler_steps); a plan counts steps, so fractions stay
  // exact enough in f64.
  const double global = static_cast<double>(batch.global);
  const bool by_samples =
      !config.value("train.train_samples").is_none() && config.value("train.train_iters").is_none();
  const auto decay_iterations = config.integer("scheduler.lr_decay_iters", 1, kMostSteps);
  const auto decay_samples = config.integer("scheduler.lr_decay_samples", 1, kMostSteps);
  double decay = static_cast<double>(decay_iterations.value_or(total_steps)) * global;
  if (by_samples) decay = static_cast<double>(decay_samples.value_or(total_steps * batch.global));
  const auto fraction = config.number("scheduler.lr_warmup_fraction", 0, 1);
  const std::int64_t warmup_iterations = config.integer("scheduler.lr_warmup_iters", 0, kMostSteps, 0);
  const std::int64_t warmup_samples = config.integer("scheduler.lr_warmup_samples", 0, kMostSteps, 0);
  double warmup =
      by_samples ? static_cast<double>(warmup_samples) : static_cast<double>(warmup_iterations) * global;
  if (fraction) warmup = *fraction * decay;
  // The framework caps a warm-up that is as long as the decay.
  if (warmup >= decay) warmup = decay - 1;
  optimizer.warmup_steps = warmup / global;
  optimizer.decay_steps = decay / global;
  optimizer.sample_fraction = 1 / global;
  optimizer.init_lr = config.number("scheduler.lr_warmup_init", 0, 1e6, 0);
  if (optimizer.init_lr > optimizer.max_lr && optimizer.max_lr > 0) {
    config.problem(
        "LW003", "scheduler.lr_warmup_init",
        fmt::format("the warm-up starts at {}, above the highest learning rate, `optimizer.lr = {}`",
                    optimizer.init_lr, optimizer.max_lr),
        "lower `scheduler.lr_warmup_init`, or raise `optimizer.lr`");
  }
}

/// The scheduler's weight decay, where it states one, takes the place of the optimizer's in every step
/// (Megatron-LM, core/optimizer_param_scheduler.py, step).
void bind_weight_decay(EffectiveConfig& config, OptimizerSpec& optimizer) {
  const std::string style = config.text("scheduler.weight_decay_incr_style", "constant");
  const auto start = config.number("scheduler.start_weight_decay", 0, 1e3);
  const auto end = config.number("scheduler.end_weight_decay", 0, 1e3);
  const bool changes = start && end && *start != *end;
  if (style != "constant" && (changes || !start || !end)) {
    config.problem(
        "LW001", "scheduler.weight_decay_incr_style",
        fmt::format("`scheduler.weight_decay_incr_style = \"{}\"`: Capstan's runtime does not have "
                    "weight decay that changes over the training",
                    style),
        "set it to `constant`, with `scheduler.start_weight_decay` and "
        "`scheduler.end_weight_decay` equal or left out");
  } else if (changes) {
    config.problem(
        "LW003", "scheduler.end_weight_decay",
        fmt::format("`scheduler.weight_decay_incr_style` is `constant`, but the weight decay starts "
                    "at {} and ends at {}",
                    *start, *end),
        "give `scheduler.start_weight_decay` and `scheduler.end_weight_decay` the same value");
  }
  if (!end) return;
  if (config.is_set("optimizer.weight_decay") && optimizer.weight_decay != *end) {
    config.problem("LW007", "optimizer.weight_decay",
                   fmt::format("`optimizer.weight_decay = {}` has no effect: the scheduler sets the weight "
                               "decay to `scheduler.end_weight_decay = {}` in every step",
                               optimizer.weight_decay, *end));
  }
  optimizer.weight_decay = *end;
}

void bind_data(EffectiveConfig& config, ModelSpec& spec) {
  spec.data.path = config.file_name("dataset.path");
  std::string kind = config.text("execute.data", spec.data.path.empty() ? "none" : "text");
  if (spec.data.path.empty() && kind != "random" && kind != "none") {
    config.require("dataset.path", "the data");
    kind = "none";
  }
  spec.data.kind = kind;
  spec.seed = static_cast<std::uint64_t>(config.integer("rng.seed", 0, INT64_MAX, 1234));
  spec.data.seed = static_cast<std::uint64_t>(
      config.integer("dataset.random_seed", 0, INT64_MAX, static_cast<std::int64_t>(spec.seed)));
}

}  // namespace

void bind_training(EffectiveConfig& config, ModelSpec& spec) {
  const Batch batch = bind_batch(config, spec);
  const std::int64_t total_steps = bind_steps(config, spec, batch);
  bind_optimizer(config, spec);
  bind_rate_schedule(config, spec, batch, total_steps);
  bind_weight_decay(config, spec.optimizer);
  bind_data(config, spec);
  // Megatron-LM's one argument for both; off there means off, whatever the default of the keys.
  const bool checks = config.boolean("arguments.check_for_nan_in_loss_and_grad", true);
  spec.check_loss = config.boolean("rerun_state_machine.check_for_nan_in_loss", true) && checks;
  spec.check_gradients = config.boolean("ddp.check_for_nan_in_grad", false) && checks;
  // Every op of the runtime is deterministic; the switch asks for nothing more.
  config.boolean("model.deterministic_mode", false);
  spec.deterministic = true;
}

}  // namespace capstan::plan

#include "cli/score/evaluation_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/enum_names.h"

namespace kmosaic {

void AddEvaluationFlags(CLI::App& command, EvaluationFlags& flags) {
  command
      .add_option("--device", flags.device, "auto (a GPU if a worker has one), cuda or emulated")
      ->check(CLI::IsMember({"auto", "cuda", "emulated"}).description(""))
      ->type_name("DEVICE")
      ->capture_default_str();
  command
      .add_option("--scale", flags.scale,
                  "reduce shapes to about this share; 1 = full, 0 = the device's default")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->type_name("S");
  command
      .add_option("--seeds", flags.secret_seeds, "secret seeds to pass; 0 = the worker's default")
      ->type_name("N");
  command
      .add_option("--public-seeds", flags.public_seeds,
                  "seeds that reasons may name; 0 = the worker's default")
      ->type_name("N");
  command
      .add_option("--require", flags.require,
                  "label that the worker must have, say gpu=H200; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command.add_flag("--local", flags.local, "start a system for this command and end it afterwards");
  command.add_option("--data", flags.data, "data directory of --local (default: a temporary one)")
      ->type_name("DIR");
}

void AddStagesFlags(CLI::App& command, EvaluationFlags& flags) {
  command
      .add_option("--stages", flags.stages,
                  "how far to go: compile,verify,benchmark or a beginning of it")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST")
      ->default_str("compile,verify");
  command.add_flag("--compile-baseline", flags.compile_baseline,
                   "with benchmark: also time the reference under torch.compile, which costs "
                   "seconds to minutes");
}

absl::StatusOr<v1::ScoreOptions> ScoreOptionsOf(const EvaluationFlags& flags) {
  static const std::vector<std::string> order = {"compile", "verify", "benchmark"};
  bool good = !flags.stages.empty() && flags.stages.size() <= order.size();
  for (size_t i = 0; good && i < flags.stages.size(); ++i) good = flags.stages[i] == order[i];
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages ", absl::StrJoin(flags.stages, ","),
                     ": give compile, or compile,verify, or compile,verify,benchmark"));
  }
  v1::ScoreOptions options;
  options.set_last_stage(*ParseRole(flags.stages.back()));
  if (auto device = ParseDevice(flags.device)) options.set_device(*device);
  if (options.last_stage() == v1::ROLE_BENCHMARK && options.device() == v1::DEVICE_KIND_EMULATED) {
    return absl::InvalidArgumentError(
        "--stages benchmark: the emulated device has no times; use --device cuda");
  }
  if (flags.compile_baseline && options.last_stage() != v1::ROLE_BENCHMARK) {
    return absl::InvalidArgumentError(
        "--compile-baseline: needs --stages compile,verify,benchmark");
  }
  options.set_compile_baseline(flags.compile_baseline);
  options.set_scale(flags.scale);
  options.set_public_seeds(flags.public_seeds);
  options.set_secret_seeds(flags.secret_seeds);
  for (const std::string& label : flags.require) {
    size_t equals = label.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("--require ", label, ": write KEY=VALUE"));
    }
    (*options.mutable_require())[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return options;
}

absl::StatusOr<Connection> ConnectForEvaluation(Host& host, const CommandLine& line,
                                                const EvaluationFlags& flags,
                                                std::unique_ptr<TemporarySystem>& system) {
  if (!flags.local) return FindCoordinator(host, line.coordinator);
  SystemOptions options;
  options.data = flags.data;
  options.device = flags.device;
  options.runners = 0;
  KMOSAIC_ASSIGN_OR_RETURN(system, TemporarySystem::Start(host, options));
  return FindCoordinator(host, system->coordinator());
}

}  // namespace kmosaic

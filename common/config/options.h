// Configuration of a process: flags over environment over a YAML file, each option
// declared once with its default, unit and meaning.
//
//   struct WorkerOptions { std::string coordinator; absl::Duration grace = absl::Seconds(30); };
//   WorkerOptions o;
//   Options options("kmosaic-gpu-worker", "Serves compile, verify and benchmark requests.");
//   options.Add("coordinator", &o.coordinator, "gRPC target of the coordinator");
//   options.Add("grace", &o.grace, "time for running requests when draining");
//   switch (options.Parse(argc, argv)) ...
//
// Option "compile-slots" is --compile-slots, KMOSAIC_COMPILE_SLOTS and the YAML key
// compile_slots. Unknown flags and YAML keys are refused. --config FILE (or
// KMOSAIC_CONFIG) names the file. --help and --help-markdown print the reference.
#ifndef KMOSAIC_COMMON_CONFIG_OPTIONS_H_
#define KMOSAIC_COMMON_CONFIG_OPTIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace kmosaic {

inline constexpr int kExitUsage = 2;

// Not thread-safe; used at the start of main.
class Options {
 public:
  Options(std::string program, std::string description);
  ~Options();

  // `target` holds the default now and the value after Parse; it must outlive Parse.
  void Add(const std::string& name, std::string* target, const std::string& help);
  void Add(const std::string& name, int64_t* target, const std::string& help);
  void Add(const std::string& name, double* target, const std::string& help);
  void Add(const std::string& name, bool* target, const std::string& help);
  // Written as Abseil writes durations: 500ms, 30s, 5m, 12h.
  void Add(const std::string& name, absl::Duration* target, const std::string& help);
  // KEY=VALUE, repeated; a mapping in YAML.
  void Add(const std::string& name, std::map<std::string, std::string>* target,
           const std::string& help);
  void Add(const std::string& name, std::vector<std::string>* target, const std::string& help);

  // Nothing when the program should go on; otherwise its exit code (0 after --help or
  // --version, kExitUsage after an error, which has been printed to standard error).
  std::optional<int> Parse(int argc, const char* const* argv);

  // The reference page's section for this program.
  std::string Markdown() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_COMMON_CONFIG_OPTIONS_H_

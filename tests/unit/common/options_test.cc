#include "common/config/options.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "testing/temp_dir.h"

namespace kmosaic {
namespace {

struct Values {
  std::string name = "default";
  int64_t slots = 4;
  absl::Duration grace = absl::Seconds(30);
  bool sandbox = true;
  std::map<std::string, std::string> labels;
};

std::optional<int> Parse(Values* values, std::vector<const char*> arguments) {
  Options options("prog", "A program.");
  options.Add("name", &values->name, "its name");
  options.Add("compile-slots", &values->slots, "compilations side by side");
  options.Add("grace", &values->grace, "time to drain");
  options.Add("sandbox", &values->sandbox, "isolate candidates");
  options.Add("label", &values->labels, "what it offers");
  arguments.insert(arguments.begin(), "prog");
  return options.Parse(static_cast<int>(arguments.size()), arguments.data());
}

std::string WriteFile(const TempDir& dir, const std::string& text) {
  std::string path = dir.path() + "/config.yaml";
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("defaults stay where nothing is given") {
  Values values;
  CHECK_FALSE(Parse(&values, {}).has_value());
  CHECK(values.name == "default");
  CHECK(values.slots == 4);
  CHECK(values.grace == absl::Seconds(30));
}

TEST_CASE("flags win over the environment, the environment over the file") {
  TempDir dir;
  std::string path =
      WriteFile(dir, "name: file\ncompile_slots: 1\ngrace: 2m\nlabel: {gpu: H200}\n");
  setenv("KMOSAIC_NAME", "environment", 1);
  setenv("KMOSAIC_COMPILE_SLOTS", "2", 1);
  Values values;
  std::optional<int> exit =
      Parse(&values, {"--config", path.c_str(), "--compile-slots", "3", "--no-sandbox"});
  unsetenv("KMOSAIC_NAME");
  unsetenv("KMOSAIC_COMPILE_SLOTS");
  REQUIRE_FALSE(exit.has_value());
  CHECK(values.slots == 3);
  CHECK(values.name == "environment");
  CHECK(values.grace == absl::Minutes(2));
  CHECK(values.labels == std::map<std::string, std::string>{{"gpu", "H200"}});
  CHECK_FALSE(values.sandbox);
}

TEST_CASE("unknown flags, unknown YAML keys and bad values are usage errors") {
  Values values;
  TempDir dir;
  CHECK(Parse(&values, {"--nmae", "x"}) == kExitUsage);
  CHECK(Parse(&values, {"--compile-slots", "many"}) == kExitUsage);
  CHECK(Parse(&values, {"--grace", "30"}) == kExitUsage);
  CHECK(Parse(&values, {"--label", "novalue"}) == kExitUsage);
  std::string unknown = WriteFile(dir, "compil_slots: 1\n");
  CHECK(Parse(&values, {"--config", unknown.c_str()}) == kExitUsage);
  std::string malformed = WriteFile(dir, "name: [1,\n");
  CHECK(Parse(&values, {"--config", malformed.c_str()}) == kExitUsage);
  CHECK(Parse(&values, {"--config", "/does/not/exist.yaml"}) == kExitUsage);
}

TEST_CASE("the reference lists each option with its three names and its default") {
  Values values;
  Options options("prog", "A program.");
  options.Add("compile-slots", &values.slots, "compilations side by side");
  CHECK(options.Markdown().find("| `--compile-slots` | `KMOSAIC_COMPILE_SLOTS` | `compile_slots` | "
                                "integer | `4` | compilations side by side |") !=
        std::string::npos);
}

}  // namespace kmosaic

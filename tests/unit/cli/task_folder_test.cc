#include "cli/taskfiles/task_folder.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/views.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/files.h"

using namespace kmosaic;
namespace v1 = kernelmosaic::v1;

namespace {

// The problems of a task with this task.yaml and a good reference; the folder's own path is
// shown as "DIR".
std::vector<std::string> ProblemsOf(const std::string& yaml) {
  TempDir temp;
  std::filesystem::path folder = temp.path();
  WriteTask(folder / "t", "x");
  WriteFile(folder / "t" / "task.yaml", yaml);
  Problems problems;
  auto task = ReadTaskFolder((folder / "t").string(), problems);
  CHECK(task.has_value() == problems.empty());
  std::vector<std::string> lines;
  for (std::string line : problems.lines()) {
    for (size_t at; (at = line.find(folder.string())) != std::string::npos;) {
      line.replace(at, folder.string().size(), "DIR");
    }
    lines.push_back(line);
  }
  return lines;
}

constexpr char kHead[] = "id: a\ntitle: b\nfamily: c\n";

}  // namespace

TEST_CASE("Every example task is read as it stands") {
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES "/tasks")) {
    Problems problems;
    auto task = ReadTaskFolder(entry.path().string(), problems);
    INFO(entry.path().string() << (problems.empty() ? "" : problems.lines()[0]));
    REQUIRE(task.has_value());
    CHECK(task->spec.id() == entry.path().filename().string());
    CHECK(HasView(task->spec, v1::VIEW_DESCRIPTION));
    CHECK(HasView(task->spec, v1::VIEW_REFERENCE));
    CHECK(HasView(task->spec, v1::VIEW_SPEC));
  }
}

TEST_CASE("All keys of task.yaml arrive in the task") {
  TempDir temp;
  std::filesystem::path folder = temp.path();
  WriteTask(folder, "x");
  WriteFile(folder / "task.yaml",
            "id: my.task-1_a\ntitle: T\nsource: S\nlicence: MIT\nfamily: softmax\nlevel: 2\n"
            "dtypes: [float32, int64]\ncontract: cuda\nentry:\n"
            "  prototype: void f(const float* x, float* y, cudaStream_t s)\n"
            "  bindings: {x: \"input[0]\", y: 'output[0]'}\n"
            "mutable_inputs: [0, 2]\nscaled_shapes: {rows: 3, cols: 5}\nreduced_precision: true\n");
  WriteFile(folder / "oracle.py", std::string("# judge\n") + kReference);
  Problems problems;
  auto task = ReadTaskFolder(folder.string(), problems);
  INFO((problems.empty() ? "" : problems.lines()[0]));
  REQUIRE(task);
  const v1::TaskSpec& spec = task->spec;
  CHECK(spec.id() == "my.task-1_a");
  CHECK(spec.source() == "S");
  CHECK(spec.licence() == "MIT");
  CHECK(spec.level() == 2);
  CHECK(spec.dtypes_size() == 2);
  CHECK(spec.contract() == v1::CONTRACT_CUDA);
  CHECK(spec.oracle().entry().bindings().at("y") == "output[0]");
  CHECK(spec.oracle().mutable_inputs(1) == 2);
  CHECK(spec.oracle().scaled_shapes().at("cols") == 5);
  CHECK(spec.oracle().reduced_precision());
  CHECK(spec.oracle().reference().rfind("# judge", 0) == 0);
  CHECK(spec.reference() == kReference);
}

TEST_CASE("Problems of task.yaml name file, line and column, all of them at once") {
  CHECK(ProblemsOf("id: a b\ntitel: x\nfamily: c\nlevel: 4\nreduced_precision: yes\n") ==
        std::vector<std::string>{
            "DIR/t/task.yaml:1:5: id: \"a b\" must be 1 to 128 letters, digits, '.', '_' or '-'",
            "DIR/t/task.yaml:1:1: title: is required; write one line for people",
            "DIR/t/task.yaml:4:8: level: expected an integer from 0 to 3, found \"4\"",
            "DIR/t/task.yaml:5:20: reduced_precision: expected true or false, found \"yes\"",
            "DIR/t/task.yaml:2:1: unknown key \"titel\"; did you mean \"title\"?"});
}

TEST_CASE("Wrong types are told with what was found") {
  CHECK(ProblemsOf(std::string(kHead) + "dtypes: float32\n") ==
        std::vector<std::string>{
            "DIR/t/task.yaml:4:9: dtypes: expected a list of texts, found \"float32\""});
  CHECK(ProblemsOf(std::string(kHead) + "level: \"1\"\n") ==
        std::vector<std::string>{
            "DIR/t/task.yaml:4:8: level: expected an integer from 0 to 3, found the text \"1\""});
  CHECK(ProblemsOf(std::string(kHead) + "scaled_shapes: {rows: 0}\n") ==
        std::vector<std::string>{
            "DIR/t/task.yaml:4:23: scaled_shapes.rows: expected an integer of at "
            "least 1, found \"0\""});
  CHECK(ProblemsOf("id: a\ntitle:\nfamily: c\n") ==
        std::vector<std::string>{"DIR/t/task.yaml:2:1: title: expected text, found nothing"});
  CHECK(ProblemsOf("id: a\nid: b\ntitle: b\nfamily: c\n") ==
        std::vector<std::string>{"DIR/t/task.yaml:2:1: \"id\" is given twice; keep one"});
}

TEST_CASE("Text that is not a YAML mapping is told with its place") {
  CHECK(ProblemsOf("") ==
        std::vector<std::string>{
            "DIR/t/task.yaml: the file is empty; it must hold a mapping of keys to values"});
  CHECK(ProblemsOf("- a\n") ==
        std::vector<std::string>{
            "DIR/t/task.yaml:1:1: expected a mapping of keys to values at the top level"});
  auto broken = ProblemsOf("id: [a\ntitle: b\n");
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].rfind("DIR/t/task.yaml:2:6: this is not YAML: ", 0) == 0);
  auto binary = ProblemsOf("id: a\ntitle: \xff\xfe\n");
  REQUIRE(binary.size() == 1);
  CHECK(binary[0] == "DIR/t/task.yaml:2: is not UTF-8; save the file as UTF-8");
}

TEST_CASE("A cuda task needs an entry, and a modelnew task has none") {
  CHECK(ProblemsOf(std::string(kHead) + "contract: cuda\n") ==
        std::vector<std::string>{"DIR/t/task.yaml:1:1: entry: is required; contract: cuda needs "
                                 "entry.prototype and entry.bindings"});
  CHECK(ProblemsOf(std::string(kHead) + "entry: {prototype: void f(), bindings: {}}\n") ==
        std::vector<std::string>{"DIR/t/task.yaml:4:8: entry: is only for contract: cuda"});
  CHECK(ProblemsOf(std::string(kHead) + "contract: cuda\nentry:\n  prototype: void f(float* y)\n"
                                        "  bindings: {z: 'output[0]'}\n  stream: s\n") ==
        std::vector<std::string>{
            "DIR/t/task.yaml:8:3: unknown key \"entry.stream\"; known here: prototype, bindings",
            "DIR/t/task.yaml:6:3: entry: binding \"z\" names no parameter of the prototype",
            "DIR/t/task.yaml:6:3: entry: parameter \"y\" has no binding; add y: input[0] or the "
            "like"});
}

TEST_CASE("Reduced shapes name integers that the oracle assigns at its top level") {
  CHECK(ProblemsOf(std::string(kHead) + "scaled_shapes: {rows: 3, cols: 4}\n").empty());
  CHECK(ProblemsOf(std::string(kHead) + "scaled_shapes: {x: 3}\n") ==
        std::vector<std::string>{
            "DIR/t/task.yaml:4:16: scaled_shapes: \"x\" is not assigned at the top "
            "level of the oracle; name a module-level integer"});
}

TEST_CASE("A folder without any view, or with nothing to judge by, is refused") {
  TempDir temp;
  std::filesystem::path folder = temp.path();
  WriteFile(folder / "t" / "task.yaml", kHead);
  Problems none;
  CHECK_FALSE(ReadTaskFolder((folder / "t").string(), none));
  CHECK(none.lines() ==
        std::vector<std::string>{(folder / "t").string() +
                                 ": has no view; add description.md, reference.py or spec.md"});
  WriteFile(folder / "t" / "spec.md", "y = x\n");
  Problems unjudged;
  CHECK_FALSE(ReadTaskFolder((folder / "t/").string(), unjudged));
  CHECK(unjudged.lines() ==
        std::vector<std::string>{
            (folder / "t").string() +
            ": has neither reference.py nor oracle.py, so nothing could judge a solution; "
            "add one"});
  Problems missing;
  CHECK_FALSE(ReadTaskFolder((folder / "none").string(), missing));
  CHECK(missing.lines() == std::vector<std::string>{(folder / "none" / "task.yaml").string() +
                                                    ": there is no such file"});
}

TEST_CASE("A file above the size limit is refused with both sizes") {
  TempDir temp;
  std::filesystem::path folder = temp.path();
  WriteTask(folder, "x");
  WriteFile(folder / "description.md", std::string(kMaxTaskFileBytes + 1, 'a'));
  Problems problems;
  CHECK_FALSE(ReadTaskFolder(folder.string(), problems));
  CHECK(problems.lines() ==
        std::vector<std::string>{(folder / "description.md").string() +
                                 ": has 1048577 bytes; at most 1048576 are allowed"});
}

#include "cli/taskfiles/recordings.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/testing/temp_dir.h"
#include "tests/unit/cli/files.h"

using namespace kmosaic;

namespace {

std::vector<std::string> ProblemsOf(const std::string& text) {
  TempDir temp;
  std::filesystem::path file = std::filesystem::path(temp.path()) / "r.jsonl";
  WriteFile(file, text);
  Problems problems;
  auto recordings = ReadRecordings(file.string(), {"job.yaml", 3, 4}, problems);
  CHECK(recordings.has_value() == problems.empty());
  std::vector<std::string> lines;
  for (const std::string& line : problems.lines())
    lines.push_back(line.substr(line.find("r.jsonl")));
  return lines;
}

}  // namespace

TEST_CASE("The example recordings are good and begin a conversation of each task") {
  Problems problems;
  auto recordings = ReadRecordings(EXAMPLES "/recordings/demo.jsonl", {}, problems);
  INFO((problems.empty() ? "" : problems.lines()[0]));
  REQUIRE(recordings);
  CHECK(recordings->tasks.size() == 16);
}

TEST_CASE("Empty lines are skipped and the text is kept as it is") {
  TempDir temp;
  std::filesystem::path file = std::filesystem::path(temp.path()) / "r.jsonl";
  std::string text =
      "\n{\"task\": \"a\", \"turn\": 0, \"content\": \"x\", \"views\": [\"spec\"], \"sample\": 1, "
      "\"note\": \"n\"}\n \n{\"task\": \"b\", \"turn\": 1, \"content\": \"\"}";
  WriteFile(file, text);
  Problems problems;
  auto recordings = ReadRecordings(file.string(), {}, problems);
  REQUIRE(recordings);
  CHECK(recordings->text == text);
  CHECK(recordings->tasks == std::set<std::string>{"a"});
}

TEST_CASE("Each bad line is told with its number and what was expected") {
  CHECK(ProblemsOf("{\"task\": \"a\", \"turn\": -1, \"content\": 3}\n"
                   "{\"task\": \"\", \"turn\": 0}\n"
                   "[]\n"
                   "{\"task\": \"a\", \"turn\": 0, \"content\": \"\", \"view\": [\"spec\"]}\n"
                   "{\"task\": \"a\", \"turn\": 0, \"content\": \"\", \"views\": [\"code\"]}\n"
                   "{\"task\" \"a\"}\n") ==
        std::vector<std::string>{
            "r.jsonl:1: \"content\" must be text",
            "r.jsonl:1: \"turn\" must be an integer of at least 0",
            "r.jsonl:2: \"content\" is required", "r.jsonl:2: \"task\" must be a task id",
            "r.jsonl:3: expected a JSON object, found array",
            "r.jsonl:4: unknown key \"view\"; did you mean \"views\"?",
            "r.jsonl:5: \"views\" must be a list of description, reference, spec",
            "r.jsonl:6:11: this is not JSON"});
  CHECK(ProblemsOf("\n\n") ==
        std::vector<std::string>{"r.jsonl: holds no reply; each line is one JSON object"});
}

TEST_CASE("A recording that is not there is a problem of the line that names it") {
  Problems problems;
  CHECK_FALSE(ReadRecordings("/nowhere/r.jsonl", {"job.yaml", 3, 4}, problems));
  CHECK(problems.lines() ==
        std::vector<std::string>{"job.yaml:3:4: /nowhere/r.jsonl: there is no such file"});
}

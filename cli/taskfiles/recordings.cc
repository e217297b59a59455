#include "cli/taskfiles/recordings.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/taskfiles/json_line.h"
#include "cli/taskfiles/nearest.h"
#include "cli/taskfiles/text_file.h"

namespace kmosaic {
namespace {

using nlohmann::json;

bool IsCount(const json& value) { return value.is_number_integer() && value >= 0; }

bool IsViewList(const json& value) {
  if (!value.is_array() || value.empty()) return false;
  for (const json& view : value) {
    if (view != "description" && view != "reference" && view != "spec") return false;
  }
  return true;
}

bool IsCallList(const json& value) {
  if (!value.is_array()) return false;
  for (const json& call : value) {
    for (const char* key : {"id", "name", "arguments"}) {
      if (!call.is_object() || !call.contains(key) || !call[key].is_string()) return false;
    }
  }
  return true;
}

void CheckRow(const json& row, const Location& where, Problems& problems) {
  static const std::vector<std::string> known = {
      "task",      "turn",          "content", "views",      "sample", "note",
      "reasoning", "finish_reason", "model",   "tool_calls", "usage"};
  for (const char* key : {"task", "turn", "content"}) {
    if (!row.contains(key)) problems.Add(where, absl::StrCat("\"", key, "\" is required"));
  }
  for (const auto& [key, value] : row.items()) {
    bool good = true;
    std::string expected;
    if (key == "task") {
      good = value.is_string() && !value.get_ref<const std::string&>().empty();
      expected = "a task id";
    } else if (key == "turn" || key == "sample") {
      good = IsCount(value);
      expected = "an integer of at least 0";
    } else if (key == "content" || key == "note" || key == "reasoning" || key == "finish_reason" ||
               key == "model") {
      good = value.is_string();
      expected = "text";
    } else if (key == "views") {
      good = IsViewList(value);
      expected = "a list of description, reference, spec";
    } else if (key == "tool_calls") {
      good = IsCallList(value);
      expected = "a list of calls with id, name and arguments, each a text";
    } else if (key == "usage") {
      good = value.is_object();
      expected = "an object of token counts";
    } else {
      auto near = Nearest(key, known);
      problems.Add(where,
                   absl::StrCat("unknown key \"", key, "\"",
                                near ? absl::StrCat("; did you mean \"", *near, "\"?") : ""));
    }
    if (!good) problems.Add(where, absl::StrCat("\"", key, "\" must be ", expected));
  }
}

}  // namespace

std::optional<Recordings> ReadRecordings(const std::string& path, const Location& reported_at,
                                         Problems& problems) {
  size_t before = problems.size();
  auto text = ReadTextFile(path, kMaxRecordingsBytes, problems, reported_at);
  if (!text) return std::nullopt;
  Recordings recordings;
  int line = 0;
  bool any = false;
  for (absl::string_view part : absl::StrSplit(*text, '\n')) {
    ++line;
    if (absl::StripAsciiWhitespace(part).empty()) continue;
    any = true;
    auto row = ParseJsonLine(std::string(part), {path, line}, problems);
    if (!row) continue;
    size_t rows_before = problems.size();
    CheckRow(*row, {path, line}, problems);
    if (problems.size() == rows_before && (*row)["turn"] == 0) {
      recordings.tasks.insert((*row)["task"]);
    }
  }
  if (!any) problems.Add({path}, "holds no reply; each line is one JSON object");
  if (problems.size() != before) return std::nullopt;
  recordings.text = std::move(*text);
  return recordings;
}

}  // namespace kmosaic

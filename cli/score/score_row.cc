#include "cli/score/score_row.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/taskfiles/entry_prototype.h"
#include "cli/taskfiles/json_line.h"
#include "common/base/enum_names.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

using nlohmann::json;

bool IsBlank(const std::string& line) { return absl::StripAsciiWhitespace(line).empty(); }

// KernelBench's results say {"compiled": ..., "correct": ...}.
std::string LabelOf(const json& row) {
  auto label = row.find("label");
  if (label == row.end()) return "";
  if (label->is_string()) return label->get<std::string>();
  if (label->is_boolean()) return label->get<bool>() ? "correct" : "incorrect";
  if (!label->is_object()) return "";
  auto flag = [&](const char* key) -> std::optional<bool> {
    auto value = label->find(key);
    if (value == label->end() || !value->is_boolean()) return std::nullopt;
    return value->get<bool>();
  };
  if (flag("compiled") == false) return "does not compile";
  if (auto correct = flag("correct")) return *correct ? "correct" : "incorrect";
  return "";
}

std::string RequiredText(const json& row, const char* key, const Location& where,
                         Problems& problems) {
  auto value = row.find(key);
  if (value == row.end() || !value->is_string() || value->get_ref<const std::string&>().empty()) {
    problems.Add(where,
                 absl::StrCat("\"", key, "\" is required and must be the text of a program"));
    return "";
  }
  return value->get<std::string>();
}

void ReadEntry(const json& row, kernelmosaic::v1::CudaEntry& entry, const Location& where,
               Problems& problems) {
  auto value = row.find("entry");
  bool shaped = value != row.end() && value->is_object() && value->contains("prototype") &&
                (*value)["prototype"].is_string() && value->contains("bindings") &&
                (*value)["bindings"].is_object();
  if (!shaped) {
    problems.Add(where,
                 "a cuda solution needs \"entry\": {\"prototype\": \"void ...\", \"bindings\": "
                 "{\"x\": \"input[0]\", ...}}");
    return;
  }
  entry.set_prototype((*value)["prototype"].get<std::string>());
  for (const auto& [name, target] : (*value)["bindings"].items()) {
    if (target.is_string()) (*entry.mutable_bindings())[name] = target.get<std::string>();
  }
  for (const std::string& wrong : CheckEntry(entry))
    problems.Add(where, absl::StrCat("entry: ", wrong));
}

void ReadFreedoms(const json& row, kernelmosaic::v1::Oracle& oracle, const Location& where,
                  Problems& problems) {
  if (auto value = row.find("mutable_inputs"); value != row.end()) {
    bool good = value->is_array() && std::all_of(value->begin(), value->end(), [](const json& v) {
                  return v.is_number_unsigned() && v <= std::numeric_limits<uint32_t>::max();
                });
    if (!good) {
      problems.Add(where, "\"mutable_inputs\" must be a list of positions from 0");
    } else {
      for (const json& position : *value) oracle.add_mutable_inputs(position.get<uint32_t>());
    }
  }
  if (auto value = row.find("scaled_shapes"); value != row.end()) {
    bool good = value->is_object() && std::all_of(value->begin(), value->end(), [](const json& v) {
                  return v.is_number_integer() && v >= 1;
                });
    if (!good) {
      problems.Add(where, "\"scaled_shapes\" must map names to integers of at least 1");
    } else {
      for (const auto& [name, size] : value->items()) {
        (*oracle.mutable_scaled_shapes())[name] = size.get<int64_t>();
      }
    }
  }
  if (auto value = row.find("reduced_precision"); value != row.end()) {
    if (value->is_boolean()) {
      oracle.set_reduced_precision(value->get<bool>());
    } else {
      problems.Add(where, "\"reduced_precision\" must be true or false");
    }
  }
}

}  // namespace

std::optional<ScoreRow> ParseScoreRow(const std::string& line, const Location& where,
                                      Problems& problems) {
  size_t before = problems.size();
  if (line.size() > kMaxRowBytes) {
    problems.Add(where, absl::StrCat("the line has ", line.size(), " bytes; at most ", kMaxRowBytes,
                                     " are allowed"));
    return std::nullopt;
  }
  if (ToValidUtf8(line) != line) {
    problems.Add(where, "is not UTF-8");
    return std::nullopt;
  }
  auto row = ParseJsonLine(line, where, problems);
  if (!row) return std::nullopt;
  ScoreRow result;
  result.label = LabelOf(*row);
  auto id = row->find("id");
  if (id == row->end()) {
    result.id = absl::StrCat("line-", where.line);
  } else if (id->is_string() && !id->get_ref<const std::string&>().empty()) {
    result.id = id->get<std::string>();
  } else if (id->is_number_integer()) {
    result.id = id->dump();
  } else {
    problems.Add(where, "\"id\" must be text");
  }
  v1::Oracle& oracle = *result.request.mutable_oracle();
  v1::Solution& solution = *result.request.mutable_solution();
  oracle.set_reference(RequiredText(*row, "reference", where, problems));
  solution.set_source(RequiredText(*row, "solution", where, problems));
  solution.set_contract(v1::CONTRACT_MODELNEW);
  if (auto contract = row->find("contract"); contract != row->end()) {
    auto parsed =
        contract->is_string() ? ParseContract(contract->get<std::string>()) : std::nullopt;
    if (parsed) {
      solution.set_contract(*parsed);
    } else {
      problems.Add(where, "\"contract\" must be \"modelnew\" or \"cuda\"");
    }
  }
  if (solution.contract() == v1::CONTRACT_CUDA)
    ReadEntry(*row, *oracle.mutable_entry(), where, problems);
  ReadFreedoms(*row, oracle, where, problems);
  if (problems.size() != before) return std::nullopt;
  return result;
}

std::optional<ScoreRow> ScoreFile::Next(Problems& problems) {
  std::string line;
  while ((limit_ == 0 || read_ < limit_) && std::getline(input_, line)) {
    ++line_;
    if (IsBlank(line)) continue;
    ++read_;
    if (auto row = ParseScoreRow(line, {name_, line_}, problems)) return row;
  }
  return std::nullopt;
}

uint64_t CountRows(std::istream& input, uint64_t limit) {
  std::streampos start = input.tellg();
  if (start == std::streampos(-1)) {
    input.clear();
    return 0;
  }
  uint64_t rows = 0;
  std::string line;
  while ((limit == 0 || rows < limit) && std::getline(input, line)) {
    if (!IsBlank(line)) ++rows;
  }
  input.clear();
  input.seekg(start);
  return rows;
}

}  // namespace kmosaic

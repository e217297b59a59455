#include "cli/taskfiles/task_folder.h"

#include <algorithm>
#include <filesystem>
#include <regex>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/taskfiles/entry_prototype.h"
#include "cli/taskfiles/text_file.h"
#include "cli/taskfiles/yaml_mapping.h"

namespace kmosaic {
namespace {

namespace v1 = kernelmosaic::v1;

bool IsTaskId(const std::string& id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

// The file's text, "" when there is none or it was refused.
std::string OptionalFile(const std::filesystem::path& folder, const std::string& name,
                         Problems& problems) {
  std::filesystem::path path = folder / name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  auto text = ReadTextFile(path.string(), kMaxTaskFileBytes, problems);
  if (!text) return "";
  if (absl::StripAsciiWhitespace(*text).empty()) {
    problems.Add({path.string()}, "is empty; write the view or remove the file");
    return "";
  }
  return *text;
}

void ReadIdentity(YamlMapping& task, v1::TaskSpec& spec) {
  task.Require("id", "write id: NAME");
  if (auto id = task.Text("id")) {
    if (IsTaskId(*id)) {
      spec.set_id(*id);
    } else {
      task.Fail("id",
                absl::StrCat("\"", *id, "\" must be 1 to 128 letters, digits, '.', '_' or '-'"));
    }
  }
  task.Require("title", "write one line for people");
  if (auto title = task.Text("title")) {
    if (title->empty() || title->find('\n') != std::string::npos) {
      task.Fail("title", "must be one line that is not empty");
    }
    spec.set_title(*title);
  }
  if (auto source = task.Text("source")) spec.set_source(*source);
  if (auto licence = task.Text("licence")) spec.set_licence(*licence);
  task.Require("family", "write the operator family, say family: softmax");
  if (auto family = task.Text("family")) {
    if (family->empty()) task.Fail("family", "must not be empty");
    spec.set_family(*family);
  }
  if (auto level = task.Integer("level", 0, 3)) spec.set_level(static_cast<uint32_t>(*level));
  if (auto dtypes = task.TextList("dtypes")) {
    for (const YamlText& dtype : *dtypes) spec.add_dtypes(dtype.text);
  }
}

void ReadContract(YamlMapping& task, v1::TaskSpec& spec) {
  spec.set_contract(v1::CONTRACT_MODELNEW);
  if (auto contract = task.Choice("contract", {"modelnew", "cuda"})) {
    if (*contract == "cuda") spec.set_contract(v1::CONTRACT_CUDA);
  }
  auto entry = task.Mapping("entry");
  if (spec.contract() == v1::CONTRACT_MODELNEW) {
    if (task.Has("entry")) task.Fail("entry", "is only for contract: cuda");
    return;
  }
  task.Require("entry", "contract: cuda needs entry.prototype and entry.bindings");
  if (!entry) return;
  v1::CudaEntry* wire = spec.mutable_oracle()->mutable_entry();
  entry->Require("prototype", "write \"void NAME(const float* x, ..., cudaStream_t stream)\"");
  auto prototype = entry->Text("prototype");
  if (prototype) wire->set_prototype(*prototype);
  entry->Require("bindings", "say what each parameter gets, x: input[0]");
  auto bindings = entry->TextMap("bindings");
  if (bindings) {
    for (const auto& [name, target] : *bindings) (*wire->mutable_bindings())[name] = target;
  }
  entry->Finish();
  if (!prototype || !bindings) return;
  for (const std::string& wrong : CheckEntry(*wire)) task.Fail("entry", wrong);
}

// Whether the Python source assigns `name` outside any function or class.
bool AssignsAtModuleLevel(const std::string& source, const std::string& name) {
  std::regex assignment(absl::StrCat(R"((^|\n)([A-Za-z_][\w, ]*,\s*)?)", name,
                                     R"(\b\s*(,[\w, ]*)?(:[^=\n]+)?=[^=])"));
  return std::regex_search(source, assignment);
}

void ReadOracle(YamlMapping& task, v1::TaskSpec& spec) {
  v1::Oracle& oracle = *spec.mutable_oracle();
  if (auto positions = task.IntegerList("mutable_inputs", 0)) {
    for (int64_t position : *positions) oracle.add_mutable_inputs(static_cast<uint32_t>(position));
  }
  if (auto reduced = task.Bool("reduced_precision")) oracle.set_reduced_precision(*reduced);
  if (auto shapes = task.IntegerMap("scaled_shapes", 1)) {
    for (const auto& [name, value] : *shapes) {
      (*oracle.mutable_scaled_shapes())[name] = value;
      static const std::regex identifier(R"([A-Za-z_]\w*)");
      bool assigned =
          std::regex_match(name, identifier) && AssignsAtModuleLevel(oracle.reference(), name);
      if (!oracle.reference().empty() && !assigned) {
        task.Fail("scaled_shapes", absl::StrCat("\"", name,
                                                "\" is not assigned at the top level of the "
                                                "oracle; name a module-level integer"));
      }
    }
  }
}

}  // namespace

std::optional<TaskFolder> ReadTaskFolder(const std::string& path, Problems& problems) {
  size_t before = problems.size();
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::string file = (folder / "task.yaml").string();

  TaskFolder task;
  task.path = folder.string();
  v1::TaskSpec& spec = task.spec;
  spec.set_description(OptionalFile(folder, "description.md", problems));
  spec.set_reference(OptionalFile(folder, "reference.py", problems));
  spec.set_spec(OptionalFile(folder, "spec.md", problems));
  std::string oracle = OptionalFile(folder, "oracle.py", problems);
  spec.mutable_oracle()->set_reference(oracle.empty() ? spec.reference() : oracle);

  auto text = ReadTextFile(file, kMaxTaskFileBytes, problems);
  if (!text) return std::nullopt;
  auto document = YamlDocument::Parse(file, *text, {}, problems);
  if (!document) return std::nullopt;
  YamlMapping mapping = YamlMapping::Root(*document, problems);
  ReadIdentity(mapping, spec);
  ReadContract(mapping, spec);
  ReadOracle(mapping, spec);
  mapping.Finish();
  task.id_at = mapping.At("id");

  if (problems.size() == before) {
    if (spec.description().empty() && spec.reference().empty() && spec.spec().empty()) {
      problems.Add({task.path}, "has no view; add description.md, reference.py or spec.md");
    } else if (spec.oracle().reference().empty()) {
      problems.Add({task.path},
                   "has neither reference.py nor oracle.py, so nothing could judge a "
                   "solution; add one");
    }
  }
  if (problems.size() != before) return std::nullopt;
  return task;
}

}  // namespace kmosaic

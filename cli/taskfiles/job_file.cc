#include "cli/taskfiles/job_file.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/taskfiles/endpoint_section.h"
#include "cli/taskfiles/job_sections.h"
#include "cli/taskfiles/text_file.h"
#include "cli/taskfiles/yaml_mapping.h"
#include "common/base/enum_names.h"
#include "common/base/views.h"

namespace kmosaic {
namespace {

namespace fs = std::filesystem;

bool IsGlob(const std::string& path) { return path.find_first_of("*?[") != std::string::npos; }

bool HasTaskFile(const std::string& folder) {
  std::error_code error;
  return fs::exists(fs::path(folder) / "task.yaml", error);
}

// Task folders that match, by name.
std::vector<std::string> MatchingFolders(const std::string& folder, const std::string& pattern) {
  std::string escaped;
  for (char c : folder) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') escaped += '\\';
    escaped += c;
  }
  std::string whole =
      fs::path(pattern).is_absolute() ? pattern : (fs::path(escaped) / pattern).string();
  glob_t found{};
  std::vector<std::string> folders;
  if (glob(whole.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      std::string path = fs::path(found.gl_pathv[i]).lexically_normal().string();
      if (HasTaskFile(path)) folders.push_back(path);
    }
  }
  globfree(&found);
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Reads each folder once, however often it is named.
void ReadTasks(YamlMapping& job, const std::string& folder, JobFile& file, Problems& problems) {
  job.Require("tasks", "list task folders, tasks: [../tasks/*]");
  auto listed = job.TextList("tasks");
  if (!listed) return;
  if (listed->empty()) job.Fail("tasks", "names no task folder");
  std::set<std::string> seen;
  std::map<std::string, std::string> folder_of_id;
  for (const YamlText& entry : *listed) {
    std::vector<std::string> folders;
    if (IsGlob(entry.text)) {
      folders = MatchingFolders(folder, entry.text);
      if (folders.empty()) {
        problems.Add(
            entry.where,
            absl::StrCat("tasks: \"", entry.text,
                         "\" matches no task folder (a "
                         "folder with a task.yaml); the path starts at the job file's folder"));
      }
    } else {
      std::string path = ResolvePath(folder, entry.text);
      if (HasTaskFile(path)) {
        folders.push_back(path);
      } else {
        problems.Add(entry.where,
                     absl::StrCat("tasks: there is no ",
                                  (fs::path(path) / "task.yaml").lexically_normal().string(),
                                  "; the path starts at the job file's folder"));
      }
    }
    for (const std::string& path : folders) {
      if (!seen.insert(fs::weakly_canonical(path).string()).second) continue;
      auto task = ReadTaskFolder(path, problems);
      if (!task) continue;
      auto [other, added] = folder_of_id.emplace(task->spec.id(), task->path);
      if (!added) {
        problems.Add(task->id_at, absl::StrCat("id: \"", task->spec.id(), "\" is also the id of ",
                                               other->second, "; ids are unique in a job"));
        continue;
      }
      file.tasks.push_back(std::move(*task));
    }
  }
}

void ReadViews(YamlMapping& job, v1::JobSpec& spec, Problems& problems) {
  job.Require("views", "list view combinations, views: [[description], [description, spec]]");
  auto lists = job.TextListList("views");
  if (!lists) return;
  if (lists->empty()) job.Fail("views", "holds no view combination");
  for (const auto& list : *lists) {
    v1::ViewSet* set = spec.add_views();
    std::set<int> seen;
    if (list.empty()) job.Fail("views", "a combination must hold at least one view");
    for (const YamlText& name : list) {
      auto view = ParseView(name.text);
      if (!view || ViewName(*view) != name.text) {
        problems.Add(name.where, absl::StrCat("views: unknown view \"", name.text,
                                              "\"; use description, reference or spec"));
      } else if (!seen.insert(*view).second) {
        problems.Add(name.where,
                     absl::StrCat("views: \"", name.text, "\" is twice in one combination"));
      } else {
        set->add_views(*view);
      }
    }
  }
}

void CheckShownViews(YamlMapping& job, const JobFile& file) {
  std::set<std::pair<std::string, int>> missing;
  for (const PlannedItem& item : PlanItems(file.spec, file.tasks.size())) {
    const TaskFolder& task = file.tasks[item.task];
    for (int view : file.spec.views(item.views).views()) {
      if (HasView(task.spec, static_cast<v1::View>(view)) ||
          !missing.emplace(task.spec.id(), view).second) {
        continue;
      }
      job.Fail("views", absl::StrCat("task \"", task.spec.id(), "\" (", task.path, ") has no ",
                                     ViewName(static_cast<v1::View>(view)), " view"));
    }
  }
}

void ReadScheduling(YamlMapping& job, v1::JobSpec& spec) {
  constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
  spec.set_guidance(job.Bool("guidance").value_or(true));
  spec.set_guidance_trial(job.Bool("guidance_trial").value_or(false));
  if (spec.guidance_trial() && !spec.guidance()) {
    job.Fail("guidance_trial", "needs guidance: true");
  }
  spec.set_protocol(job.Choice("protocol", {"fenced", "tools"}).value_or("fenced") == "tools"
                        ? v1::ANSWER_PROTOCOL_TOOLS
                        : v1::ANSWER_PROTOCOL_FENCED);
  spec.set_enough_verified(
      static_cast<uint32_t>(job.Integer("enough_verified", 0, spec.samples()).value_or(0)));
  spec.set_weight(static_cast<uint32_t>(job.Integer("weight", 1, 1000).value_or(1)));
  spec.set_priority(static_cast<uint32_t>(job.Integer("priority", 0, 9).value_or(5)));
  spec.set_max_attempts(static_cast<uint32_t>(job.Integer("max_attempts", 1, 100).value_or(3)));
  spec.set_max_concurrency(
      static_cast<uint32_t>(job.Integer("max_concurrency", 0, kMax).value_or(0)));
  if (auto target = job.Number("target_speedup", "a number of at least 0",
                               [](double value) { return value >= 0; })) {
    spec.set_target_speedup(*target);
    if (*target > 0 && !spec.evaluation().benchmark()) {
      job.Fail("target_speedup", "needs evaluation.benchmark: true");
    }
  }
}

bool HasPrices(const v1::Endpoint& endpoint) {
  return endpoint.prompt_usd_per_million() > 0 || endpoint.completion_usd_per_million() > 0;
}

void CheckCostBudget(YamlMapping& job, const v1::JobSpec& spec) {
  bool priced =
      HasPrices(spec.endpoint()) &&
      std::all_of(spec.further_endpoints().begin(), spec.further_endpoints().end(), HasPrices);
  bool limited = spec.budget().cost_usd() > 0 || spec.job_budget().cost_usd() > 0;
  if (limited && !priced) {
    job.Fail(spec.budget().cost_usd() > 0 ? "budget" : "job_budget",
             "cost_usd needs prices at the endpoint (prompt_usd_per_million, "
             "completion_usd_per_million)");
  }
}

}  // namespace

std::vector<PlannedItem> PlanItems(const v1::JobSpec& spec, size_t tasks) {
  std::vector<PlannedItem> items;
  int sets = spec.views_size();
  for (size_t task = 0; task < tasks && sets > 0; ++task) {
    bool round_robin = spec.assign() == v1::VIEW_ASSIGNMENT_ROUND_ROBIN;
    int first = round_robin ? static_cast<int>(task % static_cast<size_t>(sets)) : 0;
    int last = round_robin ? first + 1 : sets;
    for (int views = first; views < last; ++views) {
      for (uint32_t sample = 0; sample < spec.samples(); ++sample)
        items.push_back({task, views, sample});
    }
  }
  return items;
}

std::optional<JobFile> ReadJobFile(const std::string& path,
                                   const std::vector<std::string>& overrides, Problems& problems) {
  size_t before = problems.size();
  auto text = ReadTextFile(path, kMaxJobFileBytes, problems);
  if (!text) return std::nullopt;
  auto document = YamlDocument::Parse(path, *text, overrides, problems);
  if (!document) return std::nullopt;

  JobFile file;
  file.path = path;
  v1::JobSpec& spec = file.spec;
  std::string folder = fs::path(path).parent_path().string();
  YamlMapping job = YamlMapping::Root(*document, problems);
  spec.set_name(job.Text("name").value_or(fs::path(path).stem().string()));
  job.Require("kind", "write kind: generate");
  spec.set_kind(job.Choice("kind", {"generate"}).value_or(""));
  ReadTasks(job, folder, file, problems);
  ReadViews(job, spec, problems);
  spec.set_assign(job.Choice("assign", {"all", "round-robin"}).value_or("all") == "all"
                      ? v1::VIEW_ASSIGNMENT_ALL
                      : v1::VIEW_ASSIGNMENT_ROUND_ROBIN);
  spec.set_samples(static_cast<uint32_t>(job.Integer("samples", 1, 1000).value_or(1)));
  std::set<std::string> recorded = ReadEndpoints(job, folder, spec, problems);
  ReadSamplingSection(job, *spec.mutable_sampling());
  ReadBudgetSection(job, *spec.mutable_budget());
  ReadJobBudgetSection(job, spec);
  ReadEvaluationSection(job, *spec.mutable_evaluation());
  ReadScheduling(job, spec);
  CheckCostBudget(job, spec);
  job.Finish();
  if (problems.size() == before) CheckShownViews(job, file);
  if (problems.size() != before) return std::nullopt;

  if (spec.endpoint().kind() == v1::ENDPOINT_KIND_REPLAY && spec.further_endpoints().empty()) {
    for (const TaskFolder& task : file.tasks) {
      if (recorded.count(task.spec.id()) != 0) continue;
      file.warnings.push_back(absl::StrCat(job.At("endpoint").ToString(),
                                           ": no reply is recorded for task \"", task.spec.id(),
                                           "\"; its conversations will end at once"));
    }
  }
  return file;
}

}  // namespace kmosaic

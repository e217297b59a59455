#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/dataset/dataset_writer.h"
#include "common/base/version.h"

namespace kmosaic {
namespace {

std::string YesNo(bool value) { return value ? "yes" : "no"; }

}  // namespace

std::string DatasetCard(const DatasetInfo& info, const DatasetCounts& counts,
                        const kernelmosaic::v1::ExportSummary& summary) {
  // The front matter lets the Hugging Face `datasets` library find the splits.
  std::string text = "---\n";
  if (!counts.rows.empty()) text += "configs:\n- config_name: default\n  data_files:\n";
  for (const auto& [split, rows] : counts.rows) {
    absl::StrAppend(&text, "  - split: ", split, "\n    path: ", split, ".jsonl\n");
  }
  absl::StrAppend(&text, "tags:\n- cuda\n- kernelmosaic\n---\n\n# Export of ",
                  absl::StrJoin(info.jobs, ", "), "\n\nMade by KernelMosaic ", kVersion, " on ",
                  absl::FormatTime("%Y-%m-%d", info.created, absl::UTCTimeZone()), ", format `",
                  info.format, "`. ", summary.rows(), " rows of ", summary.items(),
                  " conversations.\n\n");
  if (counts.emulated > 0) {
    absl::StrAppend(
        &text, "**", counts.emulated, " of the ", summary.rows(),
        " rows were verified on the emulated device only** (`\"emulated\": true`): correct on a "
        "CPU "
        "over an emulation of CUDA's execution model, never run on a GPU, without times.\n\n");
  }
  if (counts.unverified > 0) {
    absl::StrAppend(&text, "**", counts.unverified, " of the ", summary.rows(),
                    " rows hold no verified solution** (`\"verified\": false`).\n\n");
  }
  absl::StrAppend(&text, "| split | rows |\n|---|---:|\n");
  for (const auto& [split, rows] : counts.rows)
    absl::StrAppend(&text, "| ", split, " | ", rows, " |\n");
  absl::StrAppend(
      &text, "\nSplits go by task and are the same in every export.\n\n| filter | |\n|---|---|\n",
      "| emulated records | ", YesNo(info.include_emulated), " |\n| unverified conversations | ",
      YesNo(info.include_unverified), " |\n| least speedup | ",
      info.min_speedup >= 0 ? absl::StrCat(info.min_speedup) : "none", " |\n");
  if (!summary.dropped().empty()) {
    absl::StrAppend(&text, "\n| left out because | conversations |\n|---|---:|\n");
    std::map<std::string, uint64_t> dropped(summary.dropped().begin(), summary.dropped().end());
    for (const auto& [reason, number] : dropped)
      absl::StrAppend(&text, "| ", reason, " | ", number, " |\n");
  }
  return text;
}

}  // namespace kmosaic

#include "agent_runner/agent/prompt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent_runner/agent/code_extraction.h"

namespace kmosaic {
namespace {

constexpr char kRole[] =
    "You write CUDA kernels. You are given a task and you answer with one complete file that "
    "solves it. The file is compiled and run against a trusted reference on inputs that you do "
    "not see. You are told what came of it, and you answer again until it is right and then "
    "fast.\n";

constexpr char kModelNewRules[] =
    "The file is Python and defines `class ModelNew(torch.nn.Module)`:\n"
    "- `ModelNew` takes the constructor arguments and its `forward` the inputs that the task "
    "states, and `forward` returns outputs of the shapes and dtypes that the task states. "
    "Parameters are created in the order and under the names that the task states, so that they "
    "can be set to the same values as the reference's.\n"
    "- The work is done by CUDA kernels of your own, built when the file is imported through "
    "`torch.utils.cpp_extension.load_inline` (or `load`). PyTorch may allocate, reshape and make "
    "contiguous; an operator of PyTorch, cuBLAS, cuDNN or another library does not count as a "
    "solution.\n"
    "- Inputs and parameters are on the GPU. Inputs are not changed unless the task allows it.\n"
    "- Kernels run on the current stream and are all launched before `forward` returns.\n";

constexpr char kCudaRules[] =
    "The file is CUDA C++ (.cu) and defines the host function of the task as `extern \"C\"`, with "
    "exactly the prototype given:\n"
    "- Pointers are device pointers to contiguous memory. Inputs are not changed unless the task "
    "allows it; outputs are allocated by the caller and hold arbitrary bytes.\n"
    "- The function launches kernels of your own on the stream that it is given and returns "
    "without waiting for them. It does not use cuBLAS, cuDNN, Thrust's algorithms or another "
    "library's kernels.\n"
    "- Include what you use (`<cuda_runtime.h>`, `<cstdint>`). There is no `main`.\n";

constexpr char kCommonRules[] =
    "- Sizes are read from the arguments: the shapes that are checked differ from the ones in "
    "the task's text. Every element is written by each call.\n"
    "- Nothing is remembered between calls except what the constructor may set up, and the "
    "inputs' values are not guessed.\n";

constexpr char kEmulatedRules[] =
    "The file is checked on a CPU that emulates CUDA's execution model, with reduced shapes: "
    "grids, blocks, static and dynamic shared memory, barriers, warp shuffles and votes, atomics, "
    "half and bfloat16 work; tensor cores, inline PTX and textures do not.\n";

constexpr char kAnswerRules[] =
    "How to answer: a few sentences at most, then the whole file in one fenced code block. If "
    "there are several blocks, the last complete one that defines the entry point counts. No "
    "placeholders, no parts left out.\n";

constexpr char kToolAnswerRules[] =
    "How to answer: a few sentences at most, then one tool call. `evaluate` judges a whole file "
    "and tells what came of it; `submit` does the same with the file that is your last word. If "
    "you cannot call tools, the whole file in one fenced code block counts as well. No "
    "placeholders, no parts left out.\n";

bool Shows(const v1::ViewSet& views, v1::View view) {
  return std::find(views.views().begin(), views.views().end(), view) != views.views().end();
}

void AppendSection(const std::string& title, const std::string& text, std::string* prompt) {
  absl::StrAppend(prompt, "\n## ", title, "\n\n", text,
                  text.empty() || text.back() != '\n' ? "\n" : "");
}

}  // namespace

std::string FenceInfo(v1::Contract contract) {
  return contract == v1::CONTRACT_CUDA ? "cuda" : "python";
}

std::string Fenced(const std::string& info, const std::string& text) {
  size_t longest = 0;
  size_t run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  std::string fence(std::max<size_t>(3, longest + 1), '`');
  bool ends_line = !text.empty() && text.back() == '\n';
  return absl::StrCat(fence, info, "\n", text, ends_line ? "" : "\n", fence, "\n");
}

std::string SystemPrompt(const v1::JobSpec& job, const v1::TaskSpec& task) {
  std::string prompt = kRole;
  absl::StrAppend(&prompt, "\n", task.contract() == v1::CONTRACT_CUDA ? kCudaRules : kModelNewRules,
                  kCommonRules);
  if (job.evaluation().device() == v1::DEVICE_KIND_EMULATED) {
    absl::StrAppend(&prompt, "\n", kEmulatedRules);
  }
  bool tools = job.protocol() == v1::ANSWER_PROTOCOL_TOOLS;
  absl::StrAppend(&prompt, "\n", tools ? kToolAnswerRules : kAnswerRules);
  return prompt;
}

std::string TaskPrompt(const v1::TaskSpec& task, const v1::ViewSet& views,
                       const std::vector<const GuidanceDocument*>& guidance) {
  std::string prompt = absl::StrCat("# Task: ", task.title(), "\n");
  if (task.dtypes_size() > 0) {
    absl::StrAppend(&prompt, "\nData types: ", absl::StrJoin(task.dtypes(), ", "), "\n");
  }
  if (Shows(views, v1::VIEW_DESCRIPTION)) {
    AppendSection("Description", task.description(), &prompt);
  }
  if (Shows(views, v1::VIEW_REFERENCE)) {
    AppendSection("Reference program",
                  "What it computes is right; how it does so is yours to change.\n\n" +
                      Fenced("python", task.reference()),
                  &prompt);
  }
  if (Shows(views, v1::VIEW_SPEC)) AppendSection("Specification", task.spec(), &prompt);
  if (task.contract() == v1::CONTRACT_CUDA) {
    AppendSection(
        "Entry point",
        Fenced("cuda", absl::StrCat("extern \"C\" ", task.oracle().entry().prototype(), ";")),
        &prompt);
  }
  if (task.oracle().mutable_inputs_size() > 0) {
    AppendSection("Inputs that may be changed",
                  absl::StrCat("Inputs ", absl::StrJoin(task.oracle().mutable_inputs(), ", "),
                               " (counted from 0) may be overwritten."),
                  &prompt);
  }
  if (task.oracle().reduced_precision()) {
    AppendSection("Precision", "Arithmetic of lower precision than the data type is accepted.",
                  &prompt);
  }
  absl::StrAppend(&prompt, GuidanceSection(guidance));
  return prompt;
}

std::string GuidanceSection(const std::vector<const GuidanceDocument*>& guidance) {
  std::string text;
  for (const GuidanceDocument* document : guidance) {
    absl::StrAppend(&text, text.empty() ? "\n## Guidance\n" : "", "\n", document->text);
  }
  return text;
}

}  // namespace kmosaic

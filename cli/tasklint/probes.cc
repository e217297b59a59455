#include "cli/tasklint/probes.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kmosaic {
namespace {

// Inputs of a task whose use is tried one by one.
constexpr int kMostInputs = 6;

constexpr char kNoSuchInput[] = "kmosaic lint: no such input";
constexpr char kNotFinite[] = "kmosaic lint: the answer is not finite";

constexpr char kPrelude[] = R"py(

import torch as _lint_torch
from torch.utils.cpp_extension import load_inline as _lint_load_inline

_lint_extension = _lint_load_inline(
    name="kmosaic_lint",
    cpp_sources="void kmosaic_lint_touch();",
    cuda_sources='''
#include <torch/extension.h>
__global__ void kmosaic_lint_kernel() {}
void kmosaic_lint_touch() { kmosaic_lint_kernel<<<1, 1>>>(); }
''',
    functions=["kmosaic_lint_touch"],
)


def _lint_each(value, change):
    if isinstance(value, _lint_torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _lint_each(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_lint_each(item, change) for item in value)
    return value


def _lint_other(x):
    # Other values of the same kind: a bell curve of the same mean and width, or integers
    # drawn from those that are there.
    if x.is_floating_point():
        width = x.std() if x.numel() > 1 else x.abs().max() + 1
        return _lint_torch.randn_like(x) * width + x.mean()
    if x.dtype == _lint_torch.bool:
        return ~x
    return x.flatten()[_lint_torch.randint(x.numel(), (x.numel(),), device=x.device)].reshape(x.shape)


class ModelNew(Model):
    def forward(self, *inputs):
        _lint_extension.kmosaic_lint_touch()
        answer = super().forward
)py";

std::string Candidate(const v1::Oracle& oracle, absl::string_view body) {
  return absl::StrCat(oracle.reference(), kPrelude, body);
}

}  // namespace

Probe SelfProbe(const v1::Oracle& oracle) {
  std::string body = absl::StrCat(R"py(
        result = answer(*inputs)

        def check(y):
            if y.is_floating_point() and not _lint_torch.isfinite(y).all():
                raise RuntimeError(")py",
                                  kNotFinite, R"py(")
            return y

        return _lint_each(result, check)
)py");
  return {"the reference itself", true, "", Candidate(oracle, body)};
}

std::vector<Probe> CheatProbes(const v1::Oracle& oracle) {
  std::vector<Probe> probes;
  auto add = [&](const std::string& name, const std::string& meaning, absl::string_view body) {
    probes.push_back({name, false, meaning, Candidate(oracle, body)});
  };
  add("zeros", "all zeros pass as a solution", R"py(
        return _lint_each(answer(*inputs), _lint_torch.zeros_like)
)py");
  add("the mean", "the answer's mean everywhere passes as a solution", R"py(
        def mean(y):
            return _lint_torch.full_like(y, y.double().mean().item())

        return _lint_each(answer(*inputs), mean)
)py");
  add("an input", "an input as it is passes as a solution",
      absl::StrCat(R"py(
        def same(y):
            for x in inputs:
                if isinstance(x, _lint_torch.Tensor) and x.shape == y.shape:
                    return x.to(y.dtype).clone()
            raise RuntimeError(")py",
                   kNoSuchInput, R"py(")

        return _lint_each(answer(*inputs), same)
)py"));
  add("other inputs", "the answer to other inputs passes as a solution", R"py(
        return answer(*_lint_each(list(inputs), _lint_other))
)py");
  if (!oracle.reduced_precision()) {
    add("bfloat16", "the answer in bfloat16 passes as a solution", R"py(
        def reduce(y):
            return y.to(_lint_torch.bfloat16).to(y.dtype) if y.is_floating_point() else y + 1

        return _lint_each(answer(*inputs), reduce)
)py");
  }
  for (int i = 0; i < kMostInputs; ++i) {
    add(absl::StrCat("input ", i, " replaced"),
        absl::StrCat("input ", i, " does not matter: other values in it give the same answer"),
        absl::StrCat(R"py(
        changed = list(inputs)
        tensors = [i for i, x in enumerate(changed) if isinstance(x, _lint_torch.Tensor)]
        if )py",
                     i, R"py( not in tensors:
            raise RuntimeError(")py",
                     kNoSuchInput, R"py(")
        changed[)py",
                     i, R"py(] = _lint_other(changed[)py", i, R"py(])
        return answer(*changed)
)py"));
  }
  return probes;
}

absl::Status JudgeProbe(const Probe& probe, const v1::EvaluationReport& report,
                        std::string& finding) {
  finding.clear();
  v1::Verdict verdict = report.verdict();
  if (verdict == v1::VERDICT_INFRASTRUCTURE) {
    return absl::UnavailableError(absl::StrCat("the worker failed: ", report.reason()));
  }
  if (verdict == v1::VERDICT_INVALID_TASK) {
    finding = absl::StrCat("the reference does not run: ", report.reason());
    if (!report.output().empty()) absl::StrAppend(&finding, "\n", report.output());
    return absl::OkStatus();
  }
  bool passed = verdict == v1::VERDICT_PASSED;
  if (!probe.must_pass) {
    if (passed) finding = probe.meaning;
    return absl::OkStatus();
  }
  if (passed) return absl::OkStatus();
  if (absl::StrContains(report.reason(), kNotFinite)) {
    finding = "an answer holds NaN or infinity";
  } else if (verdict == v1::VERDICT_MODIFIED_INPUT) {
    finding = absl::StrCat("the reference changes an input that is not in mutable_inputs: ",
                           report.reason());
  } else if (verdict == v1::VERDICT_NONDETERMINISTIC || verdict == v1::VERDICT_WRONG_OUTPUT) {
    finding = absl::StrCat("the reference does not agree with itself: ", report.reason());
  } else {
    finding = absl::StrCat("the reference, given as a solution, is judged ", VerdictName(verdict),
                           ": ", report.reason());
  }
  return absl::OkStatus();
}

}  // namespace kmosaic

#include "gpu_worker/self_test.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/enum_names.h"

namespace kmosaic {
namespace {

constexpr char kReference[] = R"(
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return a + b

def get_inputs():
    return [torch.randn(1000), torch.randn(1000)]

def get_init_inputs():
    return []
)";

// LIMIT is how many of n elements are written, SALT a text that makes the source another one.
constexpr char kSolution[] = R"(
import torch
from torch.utils.cpp_extension import load_inline

cuda = r'''
// SALT
#include <torch/extension.h>
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < LIMIT) c[i] = a[i] + b[i];
}
torch::Tensor add_forward(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  int n = a.numel();
  add<<<(n + 255) / 256, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
'''
module = load_inline(name="self_test", cpp_sources="torch::Tensor add_forward(torch::Tensor a, torch::Tensor b);",
                     cuda_sources=cuda, functions=["add_forward"])

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return module.add_forward(a, b)
)";

absl::Status Expect(const Evaluator& evaluator, const std::string& salt, const std::string& limit,
                    v1::Verdict expected, Cancellation* cancellation) {
  v1::KernelRequest request;
  request.mutable_oracle()->set_reference(kReference);
  request.mutable_solution()->set_contract(v1::CONTRACT_MODELNEW);
  request.mutable_solution()->set_source(
      absl::StrReplaceAll(kSolution, {{"LIMIT", limit}, {"SALT", salt}}));
  request.mutable_options()->set_scale(1);
  request.mutable_options()->set_public_seeds(1);
  request.mutable_options()->set_secret_seeds(1);
  auto report = evaluator.Evaluate(request, v1::ROLE_VERIFY, cancellation);
  if (!report.ok()) return report.status();
  if (report->verdict() == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "a kernel that is ", expected == v1::VERDICT_PASSED ? "right" : "wrong", " got verdict ",
      VerdictName(report->verdict()), ": ", report->reason(),
      report->compile().log().empty() ? "" : absl::StrCat("\n", report->compile().log()),
      report->output().empty() ? "" : absl::StrCat("\n", report->output())));
}

}  // namespace

absl::Status RunSelfTest(const Evaluator& evaluator, const std::string& salt,
                         Cancellation* cancellation) {
  absl::Status right = Expect(evaluator, salt, "n", v1::VERDICT_PASSED, cancellation);
  if (!right.ok()) return right;
  return Expect(evaluator, salt, "n - 1", v1::VERDICT_WRONG_OUTPUT, cancellation);
}

}  // namespace kmosaic

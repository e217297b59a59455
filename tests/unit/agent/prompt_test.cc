#include "agent_runner/agent/prompt.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/agent/conversation_fixture.h"
#include "tests/unit/agent/golden.h"

using namespace kmosaic;  // NOLINT: tests
using Fixture = ConversationFixture;

TEST_CASE("The first messages of a modelnew task") {
  Fixture c;
  CheckGolden("system_modelnew_emulated", SystemPrompt(c.job, c.task));
  CheckGolden("task_description", TaskPrompt(c.task, c.views, {}));
}

TEST_CASE("The first messages of a cuda task on a GPU, with all views") {
  Fixture c;
  c.job.mutable_evaluation()->set_device(v1::DEVICE_KIND_CUDA);
  c.task.set_contract(v1::CONTRACT_CUDA);
  c.task.mutable_oracle()->mutable_entry()->set_prototype(
      "void twice(const float* x, float* y, int64_t n, cudaStream_t stream)");
  c.task.mutable_oracle()->add_mutable_inputs(0);
  c.task.mutable_oracle()->set_reduced_precision(true);
  c.views.add_views(v1::VIEW_SPEC);
  c.views.add_views(v1::VIEW_REFERENCE);
  GuidanceDocument document;
  document.name = "indexing";
  document.text = "## Indexing\n\nOne thread per element.\n";
  CheckGolden("system_cuda_gpu", SystemPrompt(c.job, c.task));
  CheckGolden("task_all_views", TaskPrompt(c.task, c.views, {&document}));
}

TEST_CASE("Only the chosen views are shown, and never the oracle") {
  for (int mask = 1; mask < 8; ++mask) {
    Fixture c;
    c.views.clear_views();
    if (mask & 1) c.views.add_views(v1::VIEW_DESCRIPTION);
    if (mask & 2) c.views.add_views(v1::VIEW_REFERENCE);
    if (mask & 4) c.views.add_views(v1::VIEW_SPEC);
    std::string prompt = SystemPrompt(c.job, c.task) + TaskPrompt(c.task, c.views, {});
    CHECK(absl::StrContains(prompt, "Multiply each element by two.") == ((mask & 1) != 0));
    CHECK(absl::StrContains(prompt, "# REFERENCE") == ((mask & 2) != 0));
    CHECK(absl::StrContains(prompt, "2 x_i") == ((mask & 4) != 0));
    CHECK_FALSE(absl::StrContains(prompt, "# ORACLE"));
  }
}

TEST_CASE("A fence is longer than any run of backticks in its text") {
  CHECK(Fenced("python", "x\n") == "```python\nx\n```\n");
  CHECK(Fenced("", "a ```` b") == "`````\na ```` b\n`````\n");
}

#include "agent_runner/guidance/guidance_library.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

using namespace kmosaic;  // NOLINT: tests

namespace {

GuidanceDocument Parse(const std::string& front, const std::string& text = "Some text.") {
  auto document = ParseGuidanceDocument("---\n" + front + "---\n" + text + "\n", "a.md");
  REQUIRE(document.ok());
  return *document;
}

std::string ErrorOf(const std::string& text) {
  auto document = ParseGuidanceDocument(text, "dir/a.md");
  REQUIRE_FALSE(document.ok());
  CHECK(absl::IsInvalidArgument(document.status()));
  return std::string(document.status().message());
}

std::string Names(const std::vector<const GuidanceDocument*>& documents) {
  std::string names;
  for (const auto* document : documents) names += document->name + " ";
  return names;
}

GuidanceQuery Query(v1::Stage stage, const std::string& family, const std::string& error = "") {
  GuidanceQuery query;
  query.stage = stage;
  query.family = family;
  query.error = error;
  query.token_budget = 10'000;
  return query;
}

}  // namespace

TEST_CASE("A guidance document is read with all of its keys") {
  GuidanceDocument document = Parse(
      "name: scans\nversion: 3\nstages: [implement, optimise]\nfamilies: [scan]\n"
      "contracts: [cuda]\nregimes: [memory, launch]\ndevices: [cuda]\nerrors: ['race']\n",
      "\n\nText.\n\n");
  CHECK(document.id() == "scans@3");
  CHECK(document.stages == std::vector<v1::Stage>{v1::STAGE_IMPLEMENT, v1::STAGE_OPTIMISE});
  CHECK(document.families == std::vector<std::string>{"scan"});
  CHECK(document.contracts == std::vector<v1::Contract>{v1::CONTRACT_CUDA});
  CHECK(document.regimes == std::vector<Regime>{Regime::kMemory, Regime::kLaunch});
  CHECK(document.devices == std::vector<v1::DeviceKind>{v1::DEVICE_KIND_CUDA});
  CHECK(document.errors.size() == 1);
  CHECK(document.text == "Text.\n");
  CHECK(Parse("name: a\nstages: [repair]\n").version == 1);
}

TEST_CASE("What a model is shown of a fence is its language") {
  CHECK(Parse("name: a\nstages: [repair]\n",
              "Text.\n```cuda run=x arch=sm_90a\nint a;  // run=x\n```\nMore.")
            .text == "Text.\n```cuda\nint a;  // run=x\n```\nMore.\n");
}

TEST_CASE("A guidance document that is wrong is refused with file, line and reason") {
  CHECK(absl::StartsWith(ErrorOf("no front matter\n"), "dir/a.md:1: "));
  CHECK(absl::StrContains(ErrorOf("---\nname: a\n"), "not closed"));
  CHECK(absl::StrContains(ErrorOf("---\nstages: [repair]\n---\nx\n"), "name is missing"));
  CHECK(absl::StrContains(ErrorOf("---\nname: a\n---\nx\n"), "stages is missing"));
  CHECK(absl::StrContains(ErrorOf("---\nname: a\nstages: [repair]\n---\n\n"), "no text"));
  CHECK(absl::StartsWith(ErrorOf("---\nname: a\nstages: [late]\n---\nx\n"), "dir/a.md:3: "));
  CHECK(
      absl::StrContains(ErrorOf("---\nname: a\nstage: [repair]\n---\nx\n"), "unknown key 'stage'"));
  CHECK(absl::StrContains(ErrorOf("---\nname: a\nstages: repair\n---\nx\n"), "list of strings"));
  CHECK(absl::StrContains(ErrorOf("---\nname: a\nversion: 0\nstages: [repair]\n---\nx\n"),
                          "version"));
  CHECK(absl::StrContains(ErrorOf("---\nname: a\nstages: [repair]\nerrors: ['(']\n---\nx\n"),
                          "pattern '('"));
  CHECK(absl::StrContains(ErrorOf("---\nname: [\n---\nx\n"), "dir/a.md:"));
  CHECK(absl::StrContains(ErrorOf("---\nname: a\nstages: [repair]\nregimes: [fast]\n---\nx\n"),
                          "unknown regime 'fast'"));
  CHECK(absl::StrContains(ErrorOf("---\nname: a\nstages: [repair]\ndevices: [cpu]\n---\nx\n"),
                          "unknown device 'cpu'"));
}

TEST_CASE("Documents are picked by stage, contract and family, the special ones first") {
  GuidanceLibrary library({Parse("name: general\nstages: [implement]\n"),
                           Parse("name: softmax\nstages: [implement]\nfamilies: [softmax]\n"),
                           Parse("name: scan\nstages: [implement]\nfamilies: [scan]\n"),
                           Parse("name: cuda\nstages: [implement]\ncontracts: [cuda]\n"),
                           Parse("name: faster\nstages: [optimise]\n")});
  CHECK(Names(library.Pick(Query(v1::STAGE_IMPLEMENT, "softmax"))) == "softmax general ");
  CHECK(Names(library.Pick(Query(v1::STAGE_OPTIMISE, "softmax"))) == "faster ");
  CHECK(Names(library.Pick(Query(v1::STAGE_REPAIR, "softmax"))).empty());
  GuidanceQuery query = Query(v1::STAGE_IMPLEMENT, "matmul");
  query.contract = v1::CONTRACT_CUDA;
  CHECK(Names(library.Pick(query)) == "cuda general ");
}

TEST_CASE("What bounds the kernel excludes documents and decides among those of a family") {
  GuidanceLibrary library({Parse("name: a\nstages: [optimise]\n"),
                           Parse("name: b\nstages: [optimise]\nregimes: [memory]\n"),
                           Parse("name: c\nstages: [optimise]\nfamilies: [scan]\n"),
                           Parse("name: d\nstages: [optimise]\nfamilies: [scan]\n"
                                 "regimes: [memory]\n"),
                           Parse("name: e\nstages: [optimise]\nregimes: [launch]\n")});
  GuidanceQuery query = Query(v1::STAGE_OPTIMISE, "scan");
  CHECK(Names(library.Pick(query)) == "c d a b e ");
  query.regime = Regime::kMemory;
  CHECK(Names(library.Pick(query)) == "d c b a ");
}

TEST_CASE("Documents for one kind of device are not picked for another") {
  GuidanceLibrary library({Parse("name: a\nstages: [optimise]\ndevices: [cuda]\n"),
                           Parse("name: b\nstages: [optimise]\n")});
  GuidanceQuery query = Query(v1::STAGE_OPTIMISE, "scan");
  CHECK(Names(library.Pick(query)) == "a b ");
  query.device = v1::DEVICE_KIND_CUDA;
  CHECK(Names(library.Pick(query)) == "a b ");
  query.device = v1::DEVICE_KIND_EMULATED;
  CHECK(Names(library.Pick(query)) == "b ");
}

TEST_CASE("The regime comes from the benchmark") {
  v1::EvaluationReport report;
  CHECK(RegimeOf(report) == Regime::kUnknown);
  v1::BenchmarkReport& times = *report.mutable_benchmark();
  times.set_median_us(100);
  times.set_floor_bound("memory");
  CHECK(RegimeOf(report) == Regime::kMemory);
  times.set_floor_bound("arithmetic");
  times.set_launch_us(5);
  CHECK(RegimeOf(report) == Regime::kArithmetic);
  times.set_median_us(15);
  CHECK(RegimeOf(report) == Regime::kLaunch);
}

TEST_CASE("Documents with error patterns are picked by the last error only") {
  GuidanceLibrary library({Parse("name: races\nstages: [repair]\nerrors: ['(?i)data race']\n"),
                           Parse("name: always\nstages: [repair]\n")});
  CHECK(Names(library.Pick(Query(v1::STAGE_REPAIR, "x", "there is a Data Race here"))) ==
        "races always ");
  CHECK(Names(library.Pick(Query(v1::STAGE_REPAIR, "x", "syntax error"))) == "always ");
}

TEST_CASE("Documents in context are not picked again, and the budget holds") {
  GuidanceLibrary library({Parse("name: a\nstages: [repair]\n", std::string(3000, 'a')),
                           Parse("name: b\nstages: [repair]\n", std::string(300, 'b'))});
  GuidanceQuery query = Query(v1::STAGE_REPAIR, "x");
  CHECK(Names(library.Pick(query)) == "a b ");
  query.present = {"a@1"};
  CHECK(Names(library.Pick(query)) == "b ");
  query.present = {};
  query.token_budget = 200;
  CHECK(Names(library.Pick(query)) == "b ");
  query.token_budget = 10;
  CHECK(library.Pick(query).empty());
}

TEST_CASE("Every document that is shipped loads and fits into a turn") {
  auto library = GuidanceLibrary::Load(KMOSAIC_GUIDANCE_DIR);
  INFO(library.status());
  REQUIRE(library.ok());
  CHECK(library->size() > 0);
  CHECK(library->Find("no-such-document@1") == nullptr);
  CHECK(library->size() >= 28);
}

TEST_CASE("A first turn holds the complete file of its contract, whatever the family") {
  auto library = GuidanceLibrary::Load(KMOSAIC_GUIDANCE_DIR);
  REQUIRE(library.ok());
  for (const std::string family :
       {"elementwise", "activation", "reduction", "softmax", "normalisation", "matmul",
        "convolution", "pooling", "scan", "histogram", "transpose", "gather", "scatter",
        "attention", "loss", "sorting", "random", "fused", "anything else"}) {
    for (v1::Contract contract : {v1::CONTRACT_CUDA, v1::CONTRACT_MODELNEW}) {
      GuidanceQuery query = Query(v1::STAGE_IMPLEMENT, family);
      query.contract = contract;
      query.token_budget = 3000;
      const std::string names = Names(library->Pick(query));
      INFO(family << ": " << names);
      CHECK(absl::StrContains(
          names, contract == v1::CONTRACT_CUDA ? "cuda-skeleton " : "extension-pitfalls "));
    }
  }
}

TEST_CASE("Each turn of an optimisation brings a document that was not there before") {
  auto library = GuidanceLibrary::Load(KMOSAIC_GUIDANCE_DIR);
  REQUIRE(library.ok());
  GuidanceQuery query = Query(v1::STAGE_OPTIMISE, "matmul");
  query.token_budget = 1200;
  query.regime = Regime::kArithmetic;
  query.device = v1::DEVICE_KIND_EMULATED;
  std::string names;
  for (int turn = 0; turn < 8; ++turn) {
    auto picked = library->Pick(query);
    REQUIRE_FALSE(picked.empty());
    names += Names(picked);
    for (const GuidanceDocument* document : picked) query.present.push_back(document->id());
  }
  CHECK(absl::StartsWith(names, "matmul-register-tiles "));
  CHECK_FALSE(absl::StrContains(names, "tensor-cores"));   // not on the emulated device
  CHECK_FALSE(absl::StrContains(names, "matmul-shapes"));  // for products bound by memory
}

TEST_CASE("A guidance folder that is not there is named") {
  auto library = GuidanceLibrary::Load("/no/such/folder");
  CHECK(absl::IsNotFound(library.status()));
  CHECK(absl::StrContains(library.status().message(), "/no/such/folder"));
}

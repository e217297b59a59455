#include "agent_runner/agent/feedback.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent_runner/agent/payoff.h"
#include "agent_runner/agent/prompt.h"
#include "common/base/text.h"

namespace kmosaic {
namespace {

constexpr size_t kLogBytes = 4000;
constexpr size_t kOutputBytes = 1500;

// The headline of a verdict: what happened, then what to do about it.
std::string Headline(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_COMPILE_ERROR:
      return "It does not compile.";
    case v1::VERDICT_COMPILE_TIMEOUT:
      return "Compiling took too long and was stopped. Use fewer template instantiations and less "
             "unrolling.";
    case v1::VERDICT_COMPILE_RESOURCES:
      return "The compiler ran out of memory or the kernel needs more registers or shared memory "
             "than there are.";
    case v1::VERDICT_LOAD_ERROR:
      return "It compiles but cannot be loaded.";
    case v1::VERDICT_RUNTIME_ERROR:
      return "It raised an error when it was constructed or called.";
    case v1::VERDICT_CRASHED:
      return "The process crashed in the middle of a call.";
    case v1::VERDICT_ILLEGAL_LAUNCH:
      return "A kernel launch is illegal: check grid and block sizes (at most 1024 threads a "
             "block), shared memory, and empty grids.";
    case v1::VERDICT_ILLEGAL_ACCESS:
      return "A kernel reads or writes memory that does not belong to it.";
    case v1::VERDICT_TIME_LIMIT:
      return "It ran into the time limit. Look for a loop that does not end, a barrier that some "
             "threads do not reach, or far too much work.";
    case v1::VERDICT_HOST_MEMORY:
      return "It used more host memory than it may.";
    case v1::VERDICT_DEVICE_MEMORY:
      return "It ran out of device memory. Use less temporary memory.";
    case v1::VERDICT_PROCESS_LIMIT:
      return "It started more processes or threads than it may.";
    case v1::VERDICT_DISK_LIMIT:
      return "It wrote more to disk than it may.";
    case v1::VERDICT_OUTPUT_LIMIT:
      return "It printed more than it may. Remove prints.";
    case v1::VERDICT_WRONG_SHAPE:
      return "An output has the wrong shape or their number is wrong.";
    case v1::VERDICT_WRONG_DTYPE:
      return "An output has the wrong data type.";
    case v1::VERDICT_WRONG_LAYOUT:
      return "An output has the wrong strides, is on the wrong device, or shares memory with an "
             "input.";
    case v1::VERDICT_WRONG_OUTPUT:
      return "The output is wrong.";
    case v1::VERDICT_DATA_RACE:
      return "There is a data race: threads touch the same memory without a barrier or an atomic "
             "between them.";
    case v1::VERDICT_NONDETERMINISTIC:
      return "Two runs on the same input gave different outputs.";
    case v1::VERDICT_MODIFIED_INPUT:
      return "It changed an input. Inputs are read only.";
    case v1::VERDICT_OUT_OF_BOUNDS:
      return "It accesses memory outside of its buffers.";
    case v1::VERDICT_DEFERRED_WORK:
      return "Work was still going on, or only began, after the call had returned. Launch all "
             "work on the given stream within the call.";
    case v1::VERDICT_TAMPERING:
      return "It touched the evaluation itself. Only the computation that the task asks for is "
             "accepted.";
    case v1::VERDICT_NO_CUSTOM_KERNEL:
      return "The result does not come from a CUDA kernel of yours. Write the computation as your "
             "own kernel.";
    case v1::VERDICT_FORBIDDEN_LIBRARY:
      return "It calls a library for the computation. Write the computation as your own kernel.";
    case v1::VERDICT_IMPOSSIBLE_TIME:
      return "Its measured time is below what the hardware needs for the task's bytes and "
             "operations, so it cannot have done all of the work.";
    case v1::VERDICT_UNRELIABLE_TIMING:
      return "Its times vary too much to be believed. Do the same work in each call.";
    case v1::VERDICT_UNSUPPORTED:
      return "The device that checks solutions cannot run this. Use a form without the feature "
             "named.";
    default:
      return "";
  }
}

std::string Number(double value) { return absl::StrFormat("%.6g", value); }

std::string MismatchText(const v1::Mismatch& mismatch) {
  std::string text =
      absl::StrCat("Output ", mismatch.output(), ": ", mismatch.wrong_elements(), " of ",
                   mismatch.elements(), " elements are outside the tolerance");
  if (!mismatch.pattern().empty()) absl::StrAppend(&text, "; pattern: ", mismatch.pattern());
  absl::StrAppend(&text, ".\n");
  if (!mismatch.has_public_seed()) {
    absl::StrAppend(&text,
                    "It shows on inputs that are kept secret; the public ones passed. Think "
                    "of other sizes and values than the usual ones.\n");
    return text;
  }
  absl::StrAppend(&text, "At index [", absl::StrJoin(mismatch.index(), ", "), "]: expected ",
                  Number(mismatch.expected()), ", got ", Number(mismatch.got()), " (tolerance ",
                  Number(mismatch.tolerance()), "); largest error ", Number(mismatch.max_error()),
                  ". Input: seed ", mismatch.public_seed());
  if (!mismatch.family().empty()) absl::StrAppend(&text, ", values \"", mismatch.family(), "\"");
  absl::StrAppend(&text, ".\n");
  return text;
}

// What follows the kind's name in an extraction_error.
std::string Detail(const std::string& error) {
  size_t colon = error.find(": ");
  return colon == std::string::npos ? error : error.substr(colon + 2);
}

bool ShowsOutput(v1::Verdict verdict) {
  return verdict == v1::VERDICT_LOAD_ERROR || verdict == v1::VERDICT_RUNTIME_ERROR ||
         verdict == v1::VERDICT_CRASHED;
}

}  // namespace

std::string VerdictFeedback(const v1::EvaluationReport& report) {
  v1::Verdict verdict = report.verdict();
  if (verdict == v1::VERDICT_PASSED) return "It is right: all checks passed.\n";
  std::string headline = Headline(verdict);
  if (headline.empty()) return "";
  std::string text = absl::StrCat(headline, " (", VerdictName(verdict), ")\n");
  bool has_mismatch = report.verify().has_mismatch() && report.verify().mismatch().elements() > 0;
  if (has_mismatch) {
    absl::StrAppend(&text, MismatchText(report.verify().mismatch()));
  } else if (!report.reason().empty()) {
    absl::StrAppend(&text, std::string(TruncateUtf8(report.reason(), kOutputBytes)), "\n");
  }
  bool compile = verdict == v1::VERDICT_COMPILE_ERROR || verdict == v1::VERDICT_COMPILE_TIMEOUT ||
                 verdict == v1::VERDICT_COMPILE_RESOURCES || verdict == v1::VERDICT_UNSUPPORTED;
  if (compile && !report.compile().log().empty()) {
    absl::StrAppend(&text, "\n",
                    Fenced("", std::string(TruncateUtf8(report.compile().log(), kLogBytes))));
  }
  if (ShowsOutput(verdict) && !report.output().empty()) {
    absl::StrAppend(&text, "\nIt printed last:\n\n",
                    Fenced("", ElideMiddle(report.output(), kOutputBytes)));
  }
  return text;
}

std::string MeasureText(const v1::EvaluationReport& report) {
  if (report.has_benchmark() && report.benchmark().median_us() > 0) {
    const v1::BenchmarkReport& times = report.benchmark();
    std::string text = absl::StrFormat("Time: median %.4g us", times.median_us());
    if (times.has_eager_us()) {
      absl::StrAppendFormat(&text, "; PyTorch eager %.4g us", times.eager_us());
    }
    if (times.has_speedup()) absl::StrAppendFormat(&text, " (speedup %.3g)", times.speedup());
    if (times.has_floor_us()) {
      absl::StrAppendFormat(&text, "; the hardware's floor is about %.4g us", times.floor_us());
    }
    return text + ".\n";
  }
  if (!report.has_work() || report.work().cost() <= 0) return "";
  const v1::WorkReport& work = report.work();
  return absl::StrFormat(
      "Counted work (an estimate, not a time): cost %.6g; launches %d, threads %d, global loads %d "
      "bytes, global stores %d bytes, shared memory %d bytes, barriers %d, warp operations %d, "
      "atomics %d.\n",
      work.cost(), work.launches(), work.threads(), work.global_load_bytes(),
      work.global_store_bytes(), work.shared_bytes(), work.barriers(), work.warp_operations(),
      work.atomics());
}

std::string NoVersionFeedback(NoVersion kind, const std::string& error, const AnswerForm& form,
                              uint32_t max_tokens) {
  const EntryPoint& entry = form.entry;
  bool cuda = entry.contract == v1::CONTRACT_CUDA;
  std::string point =
      cuda ? absl::StrCat("the function `extern \"C\" ", entry.function, "`") : "`class ModelNew`";
  std::string text;
  switch (kind) {
    case NoVersion::kTruncated:
      text = form.tools
                 ? "Your reply ends before its tool call or code block does, so nothing was run."
                 : "Your reply ends before its code block is closed, so nothing was compiled.";
      if (max_tokens > 0) {
        absl::StrAppend(&text, " A reply may hold at most ", max_tokens, " tokens: be brief.");
      }
      break;
    case NoVersion::kNoEntryPoint:
      text = form.tools ? absl::StrCat("The file that you handed in does not define ", point, ".")
                        : absl::StrCat("No code block of your reply defines ", point, ".");
      break;
    case NoVersion::kUnfenced:
      text = absl::StrCat("Your reply defines ", point,
                          " outside of a fenced code block, so nothing was compiled.");
      break;
    case NoVersion::kBadToolCall:
      text = absl::StrCat("Your tool call was not run: ", Detail(error), ".");
      break;
    case NoVersion::kEmpty:
      text = "Your last reply was empty.";
      break;
    case NoVersion::kDegenerate:
      text = "Your last reply repeated the same piece of text without end and was dropped.";
      break;
    default:
      text = form.tools ? "Your reply calls no tool and holds no fenced code block."
                        : "Your reply holds no fenced code block.";
      break;
  }
  if (form.tools) {
    absl::StrAppend(&text, "\nCall `evaluate` with the whole file, which defines ", point, ".\n");
    return text;
  }
  absl::StrAppend(&text, "\nAnswer with the whole file in one block that starts with a line ```",
                  FenceInfo(entry.contract), " and ends with a line ```, and that defines ", point,
                  ".\n");
  return text;
}

std::string ResubmissionFeedback(uint32_t turn, const v1::EvaluationReport& report) {
  std::string text =
      absl::StrCat("Up to comments and white space this is the file of your ", "reply number ",
                   turn, ", so it was not run again. What was found then holds:\n\n",
                   VerdictFeedback(report), MeasureText(report),
                   report.verdict() == v1::VERDICT_PASSED
                       ? "\nGive a version that does something differently.\n"
                       : "\nChange what causes it, or take another approach.\n");
  return text;
}

std::string OptimiseFeedback(const v1::EvaluationReport& best) {
  bool timed = MeasureOf(best).kind != Measure::Kind::kWork;
  return absl::StrCat(VerdictFeedback(best), MeasureText(best),
                      timed ? "\nNow make it faster without changing what it computes. "
                            : "\nNow make it do less counted work without changing what it "
                              "computes: fewer bytes loaded and stored, fewer launches and "
                              "barriers. ",
                      "Say in one sentence what you change, then give the whole file again.\n");
}

std::string RollbackFeedback(const v1::EvaluationReport& last, const v1::TurnResult& best) {
  std::string text = VerdictFeedback(last);
  if (last.verdict() == v1::VERDICT_PASSED) {
    absl::StrAppend(&text, MeasureText(last), "That is no gain over the best version.\n");
  }
  absl::StrAppend(&text, "\nThis version is dropped. The best version stays; ", "it measured:\n",
                  MeasureText(best.report()), "\nGo on from the best version:\n\n",
                  Fenced(FenceInfo(best.solution().contract()), best.solution().source()),
                  "\nTry another improvement and give the whole file.\n");
  return text;
}

std::string ErrorText(const v1::EvaluationReport& report) {
  return absl::StrCat(VerdictName(report.verdict()), "\n", report.reason(), "\n",
                      report.compile().log(), "\n", report.output());
}

}  // namespace kmosaic

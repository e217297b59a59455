#include "agent_runner/agent/version.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent_runner/agent/code_extraction.h"
#include "agent_runner/agent/degenerate.h"
#include "agent_runner/agent/tools.h"
#include "common/base/digest.h"

namespace kmosaic {
namespace {

bool IsBlank(const std::string& text) { return absl::StripAsciiWhitespace(text).empty(); }

Version Without(NoVersion kind, const std::string& text) {
  Version version;
  version.kind = kind;
  version.error = absl::StrCat(NoVersionName(kind), ": ", text);
  return version;
}

Version With(const v1::TaskSpec& task, std::string source) {
  Version version;
  version.solution.set_contract(task.contract());
  version.solution.set_source(std::move(source));
  version.digest = Sha256Hex(version.solution.source());
  return version;
}

Version FromBlocks(const v1::TaskSpec& task, const v1::ModelReply& reply) {
  if (IsBlank(reply.content())) {
    return reply.finish_reason() == "length"
               ? Without(NoVersion::kTruncated, "the reply ended within its reasoning")
               : Without(NoVersion::kEmpty, "the reply holds no text");
  }
  Extraction extraction = ExtractCode(reply.content(), EntryPointOf(task));
  if (extraction.outcome == ExtractionOutcome::kCode) {
    return With(task, std::move(extraction.code));
  }
  if (EndsInRepetition(reply.content())) {
    return Without(NoVersion::kDegenerate, "the reply repeats itself without end");
  }
  switch (extraction.outcome) {
    case ExtractionOutcome::kTruncated:
      return Without(NoVersion::kTruncated, "a code block is never closed");
    case ExtractionOutcome::kNoEntryPoint:
      return Without(
          NoVersion::kNoEntryPoint,
          absl::StrCat("none of ", extraction.blocks, " code blocks defines the entry point"));
    case ExtractionOutcome::kUnfenced:
      return Without(NoVersion::kUnfenced,
                     "the entry point is defined outside of any fenced block");
    default:
      return Without(NoVersion::kNoCode, "the reply holds no fenced code block");
  }
}

}  // namespace

Version VersionOf(const v1::JobSpec& job, const v1::TaskSpec& task, const v1::ModelReply& reply) {
  if (job.protocol() != v1::ANSWER_PROTOCOL_TOOLS) return FromBlocks(task, reply);
  ToolRequest request = ReadToolCalls(reply);
  switch (request.kind) {
    case ToolRequest::Kind::kNone:
      return FromBlocks(task, reply);
    case ToolRequest::Kind::kBroken:
      return Without(NoVersion::kBadToolCall, request.error);
    case ToolRequest::Kind::kTruncated:
      return Without(NoVersion::kTruncated, "the reply ended within a tool call");
    case ToolRequest::Kind::kReadGuidance: {
      Version version = Without(NoVersion::kReadGuidance, request.document);
      version.document = std::move(request.document);
      return version;
    }
    default:
      break;
  }
  if (!DefinesEntryPoint(request.source, EntryPointOf(task))) {
    return Without(NoVersion::kNoEntryPoint, "the file does not define the entry point");
  }
  Version version = With(task, std::move(request.source));
  version.last_word = request.kind == ToolRequest::Kind::kSubmit;
  return version;
}

bool IsUnfit(const v1::ModelReply& reply, NoVersion kind) {
  bool blank = IsBlank(reply.content()) && reply.tool_calls().empty();
  return blank || kind == NoVersion::kDegenerate;
}

}  // namespace kmosaic

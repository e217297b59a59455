#include "agent_runner/agent/tools.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "tests/unit/agent/conversation_fixture.h"

using namespace kmosaic;  // NOLINT: tests
using Fixture = ConversationFixture;
using nlohmann::json;
using Kind = ToolRequest::Kind;

namespace {

v1::ModelReply Calling(const std::string& name, const std::string& arguments,
                       const std::string& finish_reason = "tool_calls") {
  v1::ModelReply reply;
  reply.set_finish_reason(finish_reason);
  v1::ToolCall& call = *reply.add_tool_calls();
  call.set_id("theirs");
  call.set_name(name);
  call.set_arguments(arguments);
  return reply;
}

std::string Arguments(const std::string& source) { return json({{"source", source}}).dump(); }

struct ToolFixture : Fixture {
  ToolFixture() { job.set_protocol(v1::ANSWER_PROTOCOL_TOOLS); }
};

GuidanceLibrary Library(const std::vector<std::string>& names) {
  std::vector<GuidanceDocument> documents;
  for (const std::string& name : names) {
    documents.push_back(*ParseGuidanceDocument(
        "---\nname: " + name + "\nstages: [optimise]\n---\nAll about " + name + ".\n", "x.md"));
  }
  return GuidanceLibrary(std::move(documents));
}

}  // namespace

TEST_CASE("Tool calls are read by what they ask for") {
  CHECK(ReadToolCalls({}).kind == Kind::kNone);
  ToolRequest evaluate = ReadToolCalls(Calling("evaluate", Arguments("int a;\n")));
  CHECK(evaluate.kind == Kind::kEvaluate);
  CHECK(evaluate.source == "int a;\n");
  CHECK(ReadToolCalls(Calling("submit", Arguments("int a;"))).source == "int a;\n");
  CHECK(ReadToolCalls(Calling("submit", Arguments("int a;"))).kind == Kind::kSubmit);
  ToolRequest read = ReadToolCalls(Calling("read_guidance", R"({"name":"scans"})"));
  CHECK(read.kind == Kind::kReadGuidance);
  CHECK(read.document == "scans");
}

TEST_CASE("Of several calls the last one counts") {
  v1::ModelReply reply = Calling("evaluate", Arguments("first"));
  *reply.add_tool_calls() = Calling("evaluate", Arguments("second")).tool_calls(0);
  CHECK(ReadToolCalls(reply).source == "second\n");
  v1::ChatMessage message = AssistantMessage(reply, 3);
  REQUIRE(message.tool_calls_size() == 1);
  CHECK(message.tool_calls(0).id() == "call_3");
}

TEST_CASE("Nothing is done from a call that is broken, and why is told") {
  for (const char* arguments : {"", "{", "[]", "null", R"({"source": 3})", R"({"code": "x"})"}) {
    INFO(arguments);
    CHECK(ReadToolCalls(Calling("evaluate", arguments)).kind == Kind::kBroken);
    CHECK_FALSE(ReadToolCalls(Calling("evaluate", arguments)).error.empty());
  }
  CHECK(ReadToolCalls(Calling("shell", "{}")).kind == Kind::kBroken);
  CHECK(absl::StrContains(ReadToolCalls(Calling("shell", "{}")).error, "'shell'"));
  CHECK(ReadToolCalls(Calling("evaluate", R"({"source": "int a)", "length")).kind ==
        Kind::kTruncated);
}

TEST_CASE("A source with line ends that are not escaped is taken as it is meant") {
  ToolRequest request = ReadToolCalls(Calling("evaluate", "{\"source\": \"a\n\tb \\\" c\\n\"}"));
  CHECK(request.kind == Kind::kEvaluate);
  CHECK(request.source == "a\n\tb \" c\n");
  CHECK(json::parse(request.arguments)["source"] == request.source);
}

TEST_CASE("A call that the server left in the text is found there") {
  v1::ModelReply reply;
  reply.set_content("Now:\n<tool_call>\n{\"name\": \"evaluate\", \"arguments\": " + Arguments("x") +
                    "}\n</tool_call>");
  CHECK(ReadToolCalls(reply).kind == Kind::kEvaluate);
  CHECK(AssistantMessage(reply, 0).tool_calls().empty());
  CHECK(AssistantMessage(reply, 0).content() == reply.content());
  reply.set_content("<tool_call>{\"name\": \"evaluate\", \"argum");
  CHECK(ReadToolCalls(reply).kind == Kind::kBroken);
  reply.set_finish_reason("length");
  CHECK(ReadToolCalls(reply).kind == Kind::kTruncated);
}

TEST_CASE("A broken call stands as text in what is sent next, for servers parse calls") {
  v1::ChatMessage message = AssistantMessage(Calling("evaluate", "{\"source"), 0);
  CHECK(message.tool_calls().empty());
  CHECK(absl::StrContains(message.content(), "evaluate {\"source"));
}

TEST_CASE_METHOD(ToolFixture, "A conversation by tool calls: judged, answered, ended by submit") {
  auto first = std::get<CallModel>(Next());
  REQUIRE(first.tools.size() == 2);
  CHECK(absl::StrContains(first.messages[0].content(), "`submit`"));
  Call("evaluate", Arguments(Source("v1")));
  CHECK(std::get<Evaluate>(Next()).solution.source() == Source("v1"));
  Judge(Failed(v1::VERDICT_WRONG_OUTPUT, "off by one"));
  auto second = std::get<CallModel>(Next());
  REQUIRE(second.added.size() == 1);
  CHECK(second.added[0].role() == v1::CHAT_ROLE_TOOL);
  CHECK(second.added[0].tool_call_id() == "call_0");
  CHECK(second.messages[2].tool_calls(0).id() == "call_0");
  CHECK(absl::StrContains(second.added[0].content(), "off by one"));
  Call("submit", Arguments(Source("v2")));
  Judge(PassedWithWork(100));
  CHECK(Ended().stop_reason() == v1::STOP_REASON_SOLVED);
  CHECK(absl::StrContains(Ended().reason(), "last word"));
}

TEST_CASE_METHOD(ToolFixture,
                 "A submit that is wrong, or an evaluate that is right, ends nothing") {
  Call("submit", Arguments(Source("v1")));
  Judge(Failed(v1::VERDICT_WRONG_OUTPUT));
  CHECK_FALSE(Ends());
  Call("evaluate", Arguments(Source("v2")));
  Judge(PassedWithWork(100));
  CHECK_FALSE(Ends());
}

TEST_CASE_METHOD(ToolFixture, "A fenced block counts where no tool is called") {
  Reply(Code("v1"));
  CHECK(std::get<Evaluate>(Next()).solution.source() == Source("v1"));
  Judge(Failed(v1::VERDICT_WRONG_OUTPUT));
  CHECK(std::get<CallModel>(Next()).added[0].role() == v1::CHAT_ROLE_USER);
}

TEST_CASE_METHOD(ToolFixture, "Broken calls get corrective turns, three in a row are the end") {
  Call("evaluate", "{\"source");
  RecordNext();
  CHECK(absl::StartsWith(steps.back().result().extraction_error(), "bad_tool_call: "));
  auto call = std::get<CallModel>(Next());
  CHECK(call.messages.back().role() == v1::CHAT_ROLE_USER);
  CHECK(absl::StrContains(call.messages.back().content(), "was not run"));
  Call("shell", "{}");
  RecordNext();
  Call("evaluate", Arguments("int no_entry_point;"));
  RecordNext();
  CHECK(absl::StartsWith(steps.back().result().extraction_error(), "no_entry_point: "));
  CHECK(Ended().stop_reason() == v1::STOP_REASON_NO_PROGRESS);
}

TEST_CASE_METHOD(ToolFixture, "Guidance is read by a call, recorded, and not without end") {
  job.set_guidance(true);
  guidance = Library({"scans", "tiles"});
  auto first = std::get<CallModel>(Next());
  REQUIRE(first.tools.size() == 3);
  CHECK(absl::StrContains(first.tools[2].description, "scans, tiles"));
  Call("read_guidance", R"({"name":"scans"})");
  RecordNext();
  auto second = std::get<CallModel>(Next());
  CHECK(absl::StrContains(second.messages.back().content(), "All about scans."));
  CHECK(second.guidance == std::vector<std::string>{"scans@1"});
  Call("read_guidance", R"({"name":"none"})");
  RecordNext();
  CHECK(absl::StrContains(LastUserMessage(), "There are: scans, tiles."));
  CHECK(std::get<CallModel>(Next()).guidance == std::vector<std::string>{"scans@1"});
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(Ends());
    Call("read_guidance", R"({"name":"tiles"})");
    RecordNext();
  }
  CHECK(Ended().stop_reason() == v1::STOP_REASON_NO_PROGRESS);
}

TEST_CASE_METHOD(ToolFixture, "Trimming keeps calls and their answers together") {
  job.mutable_budget()->set_context_tokens(4500);
  job.mutable_budget()->set_turns(20);
  for (int i = 0; i < 5; ++i) {
    Call("evaluate", Arguments(Source("v" + std::to_string(i) + std::string(2400, 'x'))));
    Judge(i == 0 ? PassedWithWork(100) : Failed(v1::VERDICT_COMPILE_ERROR));
    if (Ends()) break;
    auto call = std::get<CallModel>(Next());
    for (size_t at = 2; at < call.messages.size(); at += 2) {
      REQUIRE(call.messages[at].role() == v1::CHAT_ROLE_ASSISTANT);
      REQUIRE(call.messages[at + 1].role() == v1::CHAT_ROLE_TOOL);
      REQUIRE(call.messages[at].tool_calls(0).id() == call.messages[at + 1].tool_call_id());
    }
  }
}

// How often code extraction agrees with a careful reader, over recorded raw replies.
//
//   extraction_agreement FILE.jsonl
//
// Each line: {"id", "reply", "expect": code | truncated | no_entry_point | unfenced | no_code,
// "code"}. Replies of whole conversations with `modelnew` tasks, before reasoning is taken
// off. Prints the table of expected against found, each difference, and the agreement.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "agent_runner/agent/code_extraction.h"
#include "agent_runner/llm/thinking.h"

namespace kmosaic {
namespace {

using nlohmann::json;

// The text without the line ends that fences and files differ in.
std::string Trimmed(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int Run(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::cerr << path << " cannot be read\n";
    return 2;
  }
  std::map<std::string, std::map<std::string, int>> table;
  int rows = 0;
  int agreed = 0;
  std::string line;
  while (std::getline(file, line)) {
    json row = json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("expect")) {
      std::cerr << path << ":" << rows + 1 << ": not a labelled reply\n";
      return 2;
    }
    ++rows;
    std::string reply = row.contains("reply") ? row["reply"] : row["content"];
    Extraction found = ExtractCode(SplitThinking(reply).answer, {v1::CONTRACT_MODELNEW, ""});
    std::string expected = row["expect"];
    std::string outcome = ExtractionOutcomeName(found.outcome);
    ++table[expected][outcome];
    bool same = outcome == expected;
    if (same && expected == "code") {
      same = Trimmed(found.code) == Trimmed(row["code"]);
      if (!same) outcome = "another block";
    }
    agreed += same ? 1 : 0;
    if (!same) {
      std::cout << "differs: " << row.value("id", json(rows)).dump() << ": expected " << expected
                << ", found " << outcome << "\n";
    }
  }
  for (const auto& [expected, outcomes] : table) {
    for (const auto& [outcome, count] : outcomes) {
      std::printf("expected %-15s found %-15s %4d\n", expected.c_str(), outcome.c_str(), count);
    }
  }
  std::printf("agreement: %d of %d (%.1f %%)\n", agreed, rows, 100.0 * agreed / std::max(rows, 1));
  return agreed * 100 >= rows * 98 ? 0 : 1;
}

}  // namespace
}  // namespace kmosaic

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: extraction_agreement FILE.jsonl\n";
    return 2;
  }
  return kmosaic::Run(argv[1]);
}

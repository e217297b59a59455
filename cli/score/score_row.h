// Candidates to be scored, as files hold them (docs/cli.md).
#ifndef KMOSAIC_CLI_SCORE_SCORE_ROW_H_
#define KMOSAIC_CLI_SCORE_SCORE_ROW_H_

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <utility>

#include "cli/taskfiles/problems.h"
#include "kernelmosaic/v1/score.pb.h"

namespace kmosaic {

// Longest line of a file: a request has to fit into one message.
inline constexpr size_t kMaxRowBytes = 16 * 1024 * 1024;

struct ScoreRow {
  std::string id;
  // What the file's author measured: "correct", "incorrect", "does not compile", any other
  // text; empty where there is no label.
  std::string label;
  // Without its id and its options.
  kernelmosaic::v1::ScoreRequest request;
};

// Nothing, and problems at `where`, when the line is not a good row.
std::optional<ScoreRow> ParseScoreRow(const std::string& line, const Location& where,
                                      Problems& problems);

// Reads rows one by one. One thread.
class ScoreFile {
 public:
  // At most `limit` rows; 0: all. `input` must outlive it.
  ScoreFile(std::istream& input, std::string name, uint64_t limit)
      : input_(input), name_(std::move(name)), limit_(limit) {}

  // The next good row; what is wrong with the ones before it goes to `problems`. Nothing at
  // the end.
  std::optional<ScoreRow> Next(Problems& problems);

 private:
  std::istream& input_;
  std::string name_;
  uint64_t limit_;
  uint64_t read_ = 0;
  int line_ = 0;
};

// Rows that are left in `input`, which is put back to where it was; 0 when it cannot be.
uint64_t CountRows(std::istream& input, uint64_t limit);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SCORE_SCORE_ROW_H_

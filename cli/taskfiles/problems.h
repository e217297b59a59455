// What is wrong with a person's files, all of it, each with its place.
#ifndef KMOSAIC_CLI_TASKFILES_PROBLEMS_H_
#define KMOSAIC_CLI_TASKFILES_PROBLEMS_H_

#include <string>
#include <vector>

namespace kmosaic {

// Line and column count from 1; 0 means unknown. `file` may also be the text of a flag.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;

  // "job.yaml:3:7", "job.yaml:3", "job.yaml".
  std::string ToString() const;
};

// Gathered while files are read; nothing is submitted while there is one. Not thread-safe.
class Problems {
 public:
  void Add(const Location& where, const std::string& what);

  bool empty() const { return lines_.empty(); }
  size_t size() const { return lines_.size(); }
  // "job.yaml:3:7: samples: expected ...", in the order found.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_TASKFILES_PROBLEMS_H_

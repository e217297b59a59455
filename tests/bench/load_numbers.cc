#include "tests/bench/load_numbers.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace kmosaic {

void Latencies::AddAll(const Latencies& other) {
  seconds_.insert(seconds_.end(), other.seconds_.begin(), other.seconds_.end());
}

double Latencies::Quantile(double share) const {
  if (seconds_.empty()) return 0;
  size_t rank = std::min(seconds_.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(seconds_.size())));
  std::nth_element(seconds_.begin(), seconds_.begin() + static_cast<std::ptrdiff_t>(rank),
                   seconds_.end());
  return seconds_[rank];
}

double CpuSeconds(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  // After the name: state, 10 numbers, user and system time in ticks (proc(5)).
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

uint64_t ResidentBytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace kmosaic

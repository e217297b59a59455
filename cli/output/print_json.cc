#include "cli/output/print_json.h"

namespace kmosaic {
namespace {

constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;

}  // namespace

void PrintJson(std::ostream& out, OutputFormat format, const nlohmann::ordered_json& value) {
  if (format == OutputFormat::kJson) {
    out << value.dump(2, ' ', false, kReplace) << '\n' << std::flush;
    return;
  }
  if (!value.is_array()) {
    out << value.dump(-1, ' ', false, kReplace) << '\n' << std::flush;
    return;
  }
  for (const auto& element : value) out << element.dump(-1, ' ', false, kReplace) << '\n';
  out << std::flush;
}

}  // namespace kmosaic

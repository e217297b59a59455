#include "gpu_worker/torch_abi/sources.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kmosaic {

namespace {

bool IsBlank(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); });
}

// "name" as a string literal's content.
std::string Escaped(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

TorchSources ComposeTorchSources(const ExtensionSource& source) {
  TorchSources out;
  std::string cpp = absl::StrJoin(source.cpp_sources, "\n");
  if (!source.functions.empty()) {
    absl::StrAppend(&cpp, "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n");
    for (const std::string& name : source.functions) {
      absl::StrAppend(&cpp, "m.def(\"", Escaped(name), "\", torch::wrap_pybind_function(", name,
                      "), \"", Escaped(name), "\");\n");
    }
    absl::StrAppend(&cpp, "}\n");
  }
  if (!IsBlank(cpp)) out.cpp = absl::StrCat("#include <torch/extension.h>\n", cpp);
  const std::string cuda = absl::StrJoin(source.cuda_sources, "\n");
  if (!IsBlank(cuda)) {
    out.cuda = absl::StrCat(
        "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n", cuda);
  }
  return out;
}

const std::vector<std::string>& TorchHalfDefinitions() {
  static const std::vector<std::string> definitions = {
      "-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__",
      "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"};
  return definitions;
}

std::vector<std::string> KeptFlags(const std::vector<std::string>& flags) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const std::string_view flag = flags[i];
    const bool is_definition = flag.starts_with("-D") || flag.starts_with("-U");
    if (is_definition && flag.size() == 2) {
      if (i + 1 < flags.size()) kept.push_back(absl::StrCat(std::string(flag), flags[++i]));
    } else if (is_definition || flag.starts_with("-std=c++") || flag.starts_with("-std=gnu++")) {
      kept.emplace_back(flag);
    }
  }
  return kept;
}

}  // namespace kmosaic

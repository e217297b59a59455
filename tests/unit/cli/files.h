// Files for the tests of this folder.
#ifndef KMOSAIC_TESTS_UNIT_CLI_FILES_H_
#define KMOSAIC_TESTS_UNIT_CLI_FILES_H_

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace kmosaic {

inline void WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

inline constexpr char kReference[] =
    "import torch\n"
    "import torch.nn as nn\n"
    "\n"
    "rows = 64\n"
    "cols: int = 128\n"
    "\n"
    "class Model(nn.Module):\n"
    "    def forward(self, x):\n"
    "        return torch.relu(x)\n"
    "\n"
    "def get_inputs():\n"
    "    return [torch.randn(rows, cols)]\n"
    "\n"
    "def get_init_inputs():\n"
    "    return []\n";

// A good task with all three views.
inline void WriteTask(const std::filesystem::path& folder, const std::string& id) {
  WriteFile(folder / "task.yaml", "id: " + id + "\ntitle: Rectifier\nfamily: activation\n");
  WriteFile(folder / "description.md", "Each element, or zero where it is negative.\n");
  WriteFile(folder / "spec.md", "$y = \\max(x, 0)$\n");
  WriteFile(folder / "reference.py", kReference);
}

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_CLI_FILES_H_

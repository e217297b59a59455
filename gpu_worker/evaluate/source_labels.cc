#include "gpu_worker/evaluate/source_labels.h"

#include <array>
#include <cctype>
#include <set>

#include "absl/strings/str_cat.h"

namespace kmosaic {
namespace {

struct Mark {
  std::string_view word;
  std::string_view label;
};

// Matched as whole words.
constexpr std::array<Mark, 54> kMarks = {{
    {"torch.matmul", "library call: torch.matmul"},
    {"torch.mm", "library call: torch.mm"},
    {"torch.bmm", "library call: torch.bmm"},
    {"torch.einsum", "library call: torch.einsum"},
    {"torch.addmm", "library call: torch.addmm"},
    {"torch.softmax", "library call: torch.softmax"},
    {"torch.compile", "library call: torch.compile"},
    {"F.linear", "library call: F.linear"},
    {"F.conv1d", "library call: F.conv1d"},
    {"F.conv2d", "library call: F.conv2d"},
    {"F.conv3d", "library call: F.conv3d"},
    {"F.softmax", "library call: F.softmax"},
    {"F.layer_norm", "library call: F.layer_norm"},
    {"F.scaled_dot_product_attention", "library call: F.scaled_dot_product_attention"},
    {"torch::matmul", "library call: torch::matmul"},
    {"torch::mm", "library call: torch::mm"},
    {"at::matmul", "library call: at::matmul"},
    {"at::conv2d", "library call: at::conv2d"},
    {"cublasSgemm", "library call: cublas"},
    {"cublasGemmEx", "library call: cublas"},
    {"cudnnConvolutionForward", "library call: cudnn"},
    {"cudaStreamCreate", "stream"},
    {"cudaStreamCreateWithFlags", "stream"},
    {"cudaGraphLaunch", "cuda graph"},
    {"except", "try/except"},
    {"threading", "thread"},
    {"std::thread", "thread"},
    {"std::async", "thread"},
    {"pthread_create", "thread"},
    {"cudaLaunchHostFunc", "host callback"},
    {"cudaStreamAddCallback", "host callback"},
    {"torch.cuda.Stream", "stream"},
    {"CUDAGraph", "cuda graph"},
    {"cudaStreamSetAttribute", "stream attribute"},
    {"cudaLimitPersistingL2CacheSize", "persisting L2"},
    {"dlopen", "loads a library"},
    {"dlsym", "loads a library"},
    {"ctypes", "ctypes"},
    {"mprotect", "memory of code"},
    {"ptrace", "other processes"},
    {"process_vm_readv", "other processes"},
    {"fork", "other processes"},
    {"os.fork", "other processes"},
    {"subprocess", "other processes"},
    {"_exit", "ends the process"},
    {"os._exit", "ends the process"},
    {"settrace", "frames of the interpreter"},
    {"sys.settrace", "frames of the interpreter"},
    {"sys._getframe", "frames of the interpreter"},
    {"inspect.stack", "frames of the interpreter"},
    {"inspect.currentframe", "frames of the interpreter"},
    {"gc.get_objects", "objects of the interpreter"},
    {"gc.callbacks", "objects of the interpreter"},
    {"sys.modules", "modules of the interpreter"},
}};

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The line without what follows # (not of a preprocessor) or //.
std::string_view WithoutComment(std::string_view line) {
  size_t slashes = line.find("//");
  line = line.substr(0, slashes);
  size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  size_t hash = line.find('#');
  // "#include" and the like open a line of C++; elsewhere # begins a comment of Python.
  if (hash != std::string_view::npos && hash != first) line = line.substr(0, hash);
  if (hash == first && line.substr(hash, 2) != "#i" && line.substr(hash, 2) != "#d") return {};
  return line;
}

bool HasWord(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    bool starts = at == 0 || (!IsWordCharacter(line[at - 1]) && line[at - 1] != '.');
    size_t end = at + word.size();
    if (starts && (end == line.size() || !IsWordCharacter(line[end]))) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> SourceLabels(std::string_view source) {
  std::vector<std::string> labels;
  std::set<std::string_view> seen;
  int number = 0;
  bool in_block_comment = false;
  while (!source.empty()) {
    size_t end = source.find('\n');
    std::string_view line = source.substr(0, end);
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
    ++number;
    if (in_block_comment) {
      size_t close = line.find("*/");
      if (close == std::string_view::npos) continue;
      line.remove_prefix(close + 2);
      in_block_comment = false;
    }
    if (size_t open = line.find("/*"); open != std::string_view::npos) {
      in_block_comment = line.find("*/", open) == std::string_view::npos;
      line = line.substr(0, open);
    }
    line = WithoutComment(line);
    for (const Mark& mark : kMarks) {
      if (seen.count(mark.label) == 0 && HasWord(line, mark.word)) {
        seen.insert(mark.label);
        labels.push_back(absl::StrCat(std::string(mark.label), " (line ", number, ")"));
      }
    }
  }
  return labels;
}

}  // namespace kmosaic

"""An extension written against the light torch headers, compiled once by g++."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "gpu_worker"))
pytest.importorskip("torch", reason="the binding needs a Python with torch")

SOURCE = """
#include <torch/extension.h>
static torch::Tensor kept;
void keep(torch::Tensor x) { kept = x; }
torch::Tensor give_back() { return kept; }
torch::Tensor same(torch::Tensor x) { return x; }
void fill(torch::Tensor x, float value) {
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = value;
}
std::vector<torch::Tensor> work(torch::Tensor x) {
  auto y = torch::empty({2, x.size(-1)}, x.options().dtype(torch::kFloat64));
  y.fill_(1.5);
  auto [values, indices] = x.max(1);
  return {x.view({-1}), y, (x * 2 + 1).sum({0}, true), values, indices, x.t().contiguous(),
          torch::cat({x, x}, 1), x.index({torch::indexing::Slice(0, 1), "..."})};
}
double item(torch::Tensor x) { return x.sum().item<double>(); }
std::string about(const torch::Tensor& x) {
  return c10::str(x.sizes(), x.strides(), x.dtype(), x.device(), x.is_cuda());
}
torch::Tensor on_cpu(torch::Tensor x) { return x.to(torch::kCPU); }
std::string where(torch::Tensor x) {
  return c10::str(on_cpu(x).device(), torch::zeros({1}).device());
}
torch::Tensor bad_view(torch::Tensor x) { return x.view({7, 7}); }
std::tuple<int64_t, bool, std::string> plain(int64_t n, bool b, std::string s) {
  return {n + 1, !b, s + "!"};
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("keep", &keep); m.def("give_back", &give_back); m.def("same", &same);
  m.def("fill", &fill, py::arg("x"), py::arg("value") = 3.0);
  m.def("work", &work); m.def("item", &item); m.def("about", &about);
  m.def("where", &where); m.def("bad_view", &bad_view); m.def("plain", &plain);
}
"""


@pytest.fixture(scope="session")
def extension_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++: nothing to compile the extension with")
    folder = tmp_path_factory.mktemp("extension")
    (folder / "extension.cc").write_text(SOURCE)
    subprocess.run(
        [
            compiler,
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            f"-I{ROOT / 'gpu_worker' / 'torch_abi' / 'include'}",
            str(folder / "extension.cc"),
            "-o",
            str(folder / "extension.so"),
        ],
        check=True,
    )
    return str(folder / "extension.so")

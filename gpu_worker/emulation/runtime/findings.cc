#include "gpu_worker/emulation/runtime/findings.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace kmosaic::emulation {

namespace {

void AppendString(std::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", byte);
      out->append(escaped);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

void AppendTriple(const std::array<unsigned, 3>& triple, std::string* out) {
  *out += "[" + std::to_string(triple[0]) + "," + std::to_string(triple[1]) + "," +
          std::to_string(triple[2]) + "]";
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written <= 0) return;  // the report is a convenience; the findings are kept anyway
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string ToJson(const Finding& finding) {
  std::string out = "{\"kind\":";
  AppendString(finding.kind, &out);
  out += ",\"kernel\":";
  AppendString(finding.kernel, &out);
  out += ",\"block\":";
  AppendTriple(finding.block, &out);
  out += ",\"thread\":";
  AppendTriple(finding.thread, &out);
  out += ",\"detail\":";
  AppendString(finding.detail, &out);
  out += ",\"count\":" + std::to_string(finding.count) + "}";
  return out;
}

void Findings::Reset(int report_fd) {
  kept_.clear();
  report_fd_ = report_fd;
}

void Findings::Add(Finding finding) {
  for (Finding& known : kept_) {
    if (known.kind == finding.kind && known.kernel == finding.kernel &&
        known.detail == finding.detail) {
      ++known.count;
      return;
    }
  }
  if (kept_.size() >= kMaxKept) return;
  if (report_fd_ >= 0) WriteAll(report_fd_, ToJson(finding) + "\n");
  kept_.push_back(std::move(finding));
}

std::string Findings::AllAsJson() const {
  std::string out = "[";
  for (const Finding& finding : kept_) {
    if (out.size() > 1) out += ",";
    out += ToJson(finding);
  }
  return out + "]";
}

}  // namespace kmosaic::emulation

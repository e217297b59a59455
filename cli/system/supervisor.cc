#include "cli/system/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/output/numbers.h"
#include "common/base/status.h"

namespace kmosaic {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(50);

std::string Ending(int code) {
  if (code > 128) return absl::StrCat("was ended by signal ", code - 128);
  return absl::StrCat("ended with exit code ", code);
}

}  // namespace

std::string LogTail(const std::string& path, int lines) {
  constexpr std::streamoff kMost = 16384;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kMost));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> all = absl::StrSplit(text, '\n', absl::SkipEmpty());
  size_t first = all.size() - std::min(all.size(), static_cast<size_t>(lines));
  return absl::StrJoin(all.begin() + static_cast<long>(first), all.end(), "\n");
}

Supervisor::Supervisor(std::vector<Daemon> daemons, const Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)) {
  for (Daemon& daemon : daemons) {
    slots_.emplace_back();
    slots_.back().daemon = std::move(daemon);
  }
}

absl::Status Supervisor::Launch(Slot& slot) {
  ChildProcess::Options child;
  child.argv = slot.daemon.arguments(slot.ready, slots_.front().ready);
  child.env = slot.daemon.env;
  child.stderr_path = slot.daemon.log_path;
  child.pipe_stdout = true;
  child.own_process_group = true;
  slot.since = clock_.Steady();
  auto process = ChildProcess::Start(child);
  if (!process.ok()) return Annotate(process.status(), slot.daemon.name);
  slot.process.emplace(*std::move(process));
  slot.state = State::kStarting;
  return absl::OkStatus();
}

bool Supervisor::ReadOutput(Slot& slot) {
  bool became_ready = false;
  while (true) {
    auto line = slot.process->ReadLine(absl::ZeroDuration());
    if (!line.ok()) return became_ready;
    auto ready = ParseReadyLine(*line);
    if (!ready.ok()) continue;
    slot.ready = *ready;
    slot.state = State::kReady;
    became_ready = true;
  }
}

absl::Status Supervisor::AwaitReady(Slot& slot, const Interrupt& stop) {
  while (slot.state != State::kReady) {
    auto exit = slot.process->Poll();
    if (ReadOutput(slot)) break;
    if (exit) {
      slot.state = State::kStopped;
      return absl::UnavailableError(
          absl::StrCat(slot.daemon.name, " ", Ending(*exit), " before it was ready; the end of ",
                       slot.daemon.log_path, ":\n", LogTail(slot.daemon.log_path, 12)));
    }
    if (clock_.Steady() - slot.since > options_.ready_timeout) {
      return absl::UnavailableError(absl::StrCat(slot.daemon.name, " did not get ready within ",
                                                 ShortDuration(options_.ready_timeout), "; see ",
                                                 slot.daemon.log_path));
    }
    if (stop.WaitFor(kTick)) return absl::CancelledError("interrupted");
  }
  return absl::OkStatus();
}

absl::Status Supervisor::Start(const Interrupt& stop) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    KMOSAIC_RETURN_IF_ERROR(Launch(slots_[i]));
    // The others need the first one's address; among themselves they start together.
    if (i == 0) KMOSAIC_RETURN_IF_ERROR(AwaitReady(slots_[0], stop));
  }
  for (Slot& slot : slots_) KMOSAIC_RETURN_IF_ERROR(AwaitReady(slot, stop));
  return absl::OkStatus();
}

void Supervisor::Tick(Slot& slot) {
  absl::Duration now = clock_.Steady();
  if (slot.state == State::kStopped) return;
  if (slot.state == State::kWaiting) {
    if (now < slot.start_at) return;
    absl::Status started = Launch(slot);
    if (started.ok()) return;
    slot.start_at = now + slot.policy.OnExit(absl::ZeroDuration());
    options_.say(std::string(started.message()));
    return;
  }
  auto exit = slot.process->Poll();
  bool was_ready = slot.state == State::kReady;
  if (ReadOutput(slot) && !was_ready && !exit) {
    options_.say(absl::StrCat(slot.daemon.name, " is ready again"));
  }
  if (!exit) return;
  slot.process.reset();
  if (*exit == 0 && &slot != &slots_.front()) {
    options_.say(absl::StrCat(slot.daemon.name, " has ended as it was told to"));
    slot.state = State::kStopped;
    return;
  }
  absl::Duration wait = slot.policy.OnExit(now - slot.since);
  options_.say(absl::StrCat(slot.daemon.name, " ", Ending(*exit), "; starting it again in ",
                            ShortDuration(wait), " (", slot.daemon.log_path, ")"));
  slot.state = State::kWaiting;
  slot.start_at = now + wait;
}

void Supervisor::Run(const Interrupt& stop) {
  while (!stop.WaitFor(kTick)) {
    for (Slot& slot : slots_) Tick(slot);
  }
}

void Supervisor::Drain() {
  for (Slot& slot : slots_) {
    if (slot.state == State::kStarting) slot.process.reset();
  }
  // Runners end while workers still serve them, and both while the coordinator still takes
  // their results.
  for (size_t i = slots_.size(); i-- > 0;) {
    Slot& slot = slots_[i];
    if (slot.process) {
      slot.process->Signal(SIGTERM);
      if (!slot.process->Wait(options_.drain_timeout)) {
        options_.say(absl::StrCat(slot.daemon.name, " did not end within ",
                                  ShortDuration(options_.drain_timeout), "; killing it"));
      }
      slot.process.reset();
    }
    slot.state = State::kStopped;
  }
}

}  // namespace kmosaic

// Stores that earlier programs wrote, as dumps (tests/unit/store/schemas).
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "coordinator/queue/store_check.h"
#include "coordinator/store/migrations.h"
#include "coordinator/store/store_identity.h"
#include "tests/testing/fault_task_store.h"
#include "tests/unit/queue/queue_fixture.h"
#include "tests/unit/store/store_dump.h"

namespace kmosaic {
namespace {

std::string ReadDump(const std::string& name) {
  std::ifstream file(std::string(KMOSAIC_SCHEMAS) + "/" + name);
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const v1::Job* FindJob(const std::vector<std::pair<uint64_t, v1::Job>>& jobs, uint64_t total,
                       uint64_t dead, v1::JobState state) {
  for (const auto& [number, job] : jobs) {
    const v1::JobCounts& counts = job.counts();
    if (counts.total() == total && counts.dead() == dead && job.state() == state) return &job;
  }
  return nullptr;
}

TEST_CASE("a store of schema 1 is migrated, with everything that it held") {
  MemoryTaskStore store;
  LoadDump(ReadDump("schema1.dump"), store);
  REQUIRE(*ReadSchema(store) == 1);
  auto identity = StartOn(store, "unused");
  REQUIRE(identity.ok());
  CHECK(identity->incarnation == "incarnation");
  CHECK(*ReadSchema(store) == kSchemaVersion);
  auto summary = CheckStore(store);
  INFO(summary.status().ToString());
  REQUIRE(summary.ok());
  CHECK(summary->jobs == 5);
  CHECK(summary->dead_letters == 4);

  auto loaded = Sequencer::Load({}, *identity, store,
                                {absl::Hours(1), absl::FromUnixSeconds(1'700'100'000),
                                 DiskState::kOk, [] { return uint64_t{7}; }});
  REQUIRE(loaded.ok());
  auto jobs = (*loaded)->ListBefore(1000, 1000);
  const v1::Job* every_state = FindJob(jobs, 12, 1, v1::JOB_STATE_RUNNING);
  REQUIRE(every_state != nullptr);
  CHECK(every_state->counts().failed() == 1);
  CHECK(every_state->counts().delayed() == 1);
  CHECK(FindJob(jobs, 3, 0, v1::JOB_STATE_PAUSED) != nullptr);
  CHECK(FindJob(jobs, 1, 0, v1::JOB_STATE_FINISHED) != nullptr);
  CHECK(FindJob(jobs, 12, 0, v1::JOB_STATE_RUNNING) != nullptr);

  auto reader = JobReader::Open(store, every_state->id());
  REQUIRE(reader.ok());
  auto done = reader->ReadItem(0, true);
  REQUIRE(done.ok());
  CHECK(done->state() == v1::ITEM_STATE_DONE);
  CHECK(done->task() == "task0");
  CHECK(done->result().verified());
  auto steps = reader->ReadSteps(0);
  REQUIRE(steps.ok());
  REQUIRE(steps->size() == 2);
  CHECK((*steps)[0].reply().content() == std::string(6000, 'r'));
  CHECK(reader->ReadTask(11)->id() == "task5");
  auto letters = ReadDeadLetters(store, every_state->id(), "", 100);
  REQUIRE(letters.ok());
  REQUIRE(letters->items.size() == 2);
  CHECK(letters->items[1].state() == v1::ITEM_STATE_DEAD);
  CHECK_FALSE(letters->items[1].last_error().empty());
  auto events = ReadEvents(store, every_state->id(), 1, 1000);
  REQUIRE(events.ok());
  CHECK(events->events[1].item().task() == "task0");
}

TEST_CASE("a migration that was cut off anywhere is done by the next start") {
  MemoryTaskStore whole;
  LoadDump(ReadDump("schema1.dump"), whole);
  REQUIRE(StartOn(whole, "unused").ok());
  for (int good = 0; good < 3; ++good) {
    MemoryTaskStore memory;
    LoadDump(ReadDump("schema1.dump"), memory);
    FaultTaskStore store(memory);
    auto fault = good % 2 == 0 ? FaultTaskStore::Fault::kLost : FaultTaskStore::Fault::kApplied;
    store.FailAfter(good, fault);
    auto first = StartOn(store, "unused");
    store.Reopen();
    auto second = StartOn(store, "unused");
    INFO(second.status().ToString());
    REQUIRE(second.ok());
    INFO(CheckStore(store).status().ToString());
    CHECK(CheckStore(store).ok());
  }
}

}  // namespace
}  // namespace kmosaic

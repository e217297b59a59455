// Watches a job until it is finished, with the live bar.
#ifndef KMOSAIC_CLI_JOBS_FOLLOW_H_
#define KMOSAIC_CLI_JOBS_FOLLOW_H_

#include "cli/jobs/job_client.h"
#include "cli/program/command_line.h"

namespace kmosaic {

// Live bar on standard error until the job is finished, then a table of its conversations
// (or the job and its items as JSON) on standard output. Exit code: kExitNo when not all
// are verified.
int FollowToEnd(Host& host, JobClient& client, const v1::Job& job, OutputFormat output);

// Each event from `from_seq` on as a line or a JSON object, until the job is finished.
int PrintEvents(Host& host, JobClient& client, const v1::Job& job, uint64_t from_seq,
                OutputFormat output);

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_JOBS_FOLLOW_H_

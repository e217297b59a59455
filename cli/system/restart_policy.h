// How long a program that died waits before it is started again.
#ifndef KMOSAIC_CLI_SYSTEM_RESTART_POLICY_H_
#define KMOSAIC_CLI_SYSTEM_RESTART_POLICY_H_

#include "absl/time/time.h"

namespace kmosaic {

// Pure. Half a second after the first death, doubled with each further one up to 30 s; a
// program that ran for a minute begins anew.
class RestartPolicy {
 public:
  // The program ended after having run (ready or not) for `lifetime`; the wait before the
  // next start.
  absl::Duration OnExit(absl::Duration lifetime);

  int deaths() const { return deaths_; }

 private:
  int deaths_ = 0;
};

}  // namespace kmosaic

#endif  // KMOSAIC_CLI_SYSTEM_RESTART_POLICY_H_

// A KernelService in this process that does as it is told.
#ifndef KMOSAIC_TESTS_UNIT_COORDINATOR_FAKE_KERNEL_WORKER_H_
#define KMOSAIC_TESTS_UNIT_COORDINATOR_FAKE_KERNEL_WORKER_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/rpc/server.h"
#include "coordinator/placement/placement.h"
#include "kernelmosaic/v1/kernel.grpc.pb.h"

namespace kmosaic {

class FakeKernelWorker {
 public:
  // Serves `slots` verify slots and registers with `placement`.
  FakeKernelWorker(const std::string& name, uint32_t slots, Placement& placement);
  ~FakeKernelWorker();

  // Answers are made by this from now on; the default is PASSED with the worker's name.
  using Answer =
      std::function<grpc::Status(const v1::EvaluateRequest& request, v1::KernelResponse* response)>;
  void AnswerWith(Answer answer);
  // Calls are held until Release, or for ever.
  void Hang();
  // Answers what is held, and from now on everything at once.
  void Release();

  // Blocks until so many calls have come in, or were cancelled.
  void WaitForCalls(size_t count);
  void WaitForCancelled(size_t count);
  size_t calls();

  // The process is gone: its open calls break.
  void Die();
  // It tells its state again.
  void Sync();

 private:
  class Service;

  const std::string name_;
  const uint32_t slots_;
  Placement& placement_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<RpcServer> server_;
  std::string target_;
};

}  // namespace kmosaic

#endif  // KMOSAIC_TESTS_UNIT_COORDINATOR_FAKE_KERNEL_WORKER_H_

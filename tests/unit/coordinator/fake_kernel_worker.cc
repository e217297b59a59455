#include "tests/unit/coordinator/fake_kernel_worker.h"

#include <set>
#include <stdexcept>
#include <utility>

namespace kmosaic {

class FakeKernelWorker::Service : public v1::KernelService::CallbackService {
 public:
  class Call : public grpc::ServerUnaryReactor {
   public:
    Call(Service& service, const v1::EvaluateRequest& request, v1::KernelResponse* response)
        : service_(service), request_(request), response_(response) {}
    void OnCancel() override { service_.OnCancel(this); }
    void OnDone() override { delete this; }
    void Answer(const FakeKernelWorker::Answer& answer) { Finish(answer(request_, response_)); }

   private:
    Service& service_;
    const v1::EvaluateRequest& request_;
    v1::KernelResponse* const response_;
  };

  grpc::ServerUnaryReactor* Evaluate(grpc::CallbackServerContext*,
                                     const v1::EvaluateRequest* request,
                                     v1::KernelResponse* response) override {
    auto* call = new Call(*this, *request, response);
    bool now;
    FakeKernelWorker::Answer answer_now;
    {
      std::lock_guard lock(mutex);
      ++calls;
      now = !hang;
      answer_now = answer;
      if (!now) held.insert(call);
      changed.notify_all();
    }
    if (now) call->Answer(answer_now);
    return call;
  }

  void OnCancel(Call* call) {
    {
      std::lock_guard lock(mutex);
      if (held.erase(call) == 0) return;
      ++cancelled;
      changed.notify_all();
    }
    call->Finish(grpc::Status::CANCELLED);
  }

  std::mutex mutex;
  std::condition_variable changed;
  FakeKernelWorker::Answer answer;
  bool hang = false;
  std::set<Call*> held;
  size_t calls = 0;
  size_t cancelled = 0;
};

FakeKernelWorker::FakeKernelWorker(const std::string& name, uint32_t slots, Placement& placement)
    : name_(name), slots_(slots), placement_(placement), service_(std::make_unique<Service>()) {
  AnswerWith([name](const v1::EvaluateRequest&, v1::KernelResponse* response) {
    response->mutable_report()->set_verdict(v1::VERDICT_PASSED);
    response->mutable_report()->mutable_device()->set_worker(name);
    return grpc::Status::OK;
  });
  RpcServer::Options options;
  options.services = {service_.get()};
  options.grace = absl::ZeroDuration();
  auto server = RpcServer::Start(options);
  if (!server.ok()) throw std::runtime_error(server.status().ToString());
  server_ = *std::move(server);
  target_ = server_->target();
  Sync();
}

FakeKernelWorker::~FakeKernelWorker() { Die(); }

void FakeKernelWorker::Sync() {
  v1::WorkerSyncRequest request;
  request.set_worker(name_);
  request.set_incarnation("first");
  request.set_endpoint(target_);
  request.mutable_device()->set_kind(v1::DEVICE_KIND_EMULATED);
  v1::RoleSlots* slots = request.add_slots();
  slots->set_role(v1::ROLE_VERIFY);
  slots->set_total(slots_);
  // With the first it introduces itself, from the second on it gets work.
  placement_.Sync(request);
  placement_.Sync(request);
}

void FakeKernelWorker::AnswerWith(Answer answer) {
  std::lock_guard lock(service_->mutex);
  service_->answer = std::move(answer);
}

void FakeKernelWorker::Hang() {
  std::lock_guard lock(service_->mutex);
  service_->hang = true;
}

void FakeKernelWorker::Release() {
  std::set<Service::Call*> held;
  Answer answer;
  {
    std::lock_guard lock(service_->mutex);
    service_->hang = false;
    held = std::exchange(service_->held, {});
    answer = service_->answer;
  }
  for (Service::Call* call : held) call->Answer(answer);
}

void FakeKernelWorker::WaitForCalls(size_t count) {
  std::unique_lock lock(service_->mutex);
  service_->changed.wait(lock, [&] { return service_->calls >= count; });
}

void FakeKernelWorker::WaitForCancelled(size_t count) {
  std::unique_lock lock(service_->mutex);
  service_->changed.wait(lock, [&] { return service_->cancelled >= count; });
}

size_t FakeKernelWorker::calls() {
  std::lock_guard lock(service_->mutex);
  return service_->calls;
}

void FakeKernelWorker::Die() { server_ = nullptr; }

}  // namespace kmosaic

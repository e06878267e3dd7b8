// What one process has of the drop-in: its devices (adapter.h), in the order of the configuration,
// and who gets their events. Made at the first call that needs it, never at load; a forked child
// has its own.
//
// Locks, outermost first: Process::cm (all of rdma_cm, cm_id.h), then what any object has of its
// own. None is held while a program's memory is waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "dropin/adapter.h"
#include "dropin/exported.h"
#include "urnic/urnic.h"

namespace urnic::dropin {

// Who may get events of a device. Events name it by a number, so that one which comes late finds
// nobody instead of memory that is no longer there.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual void on_event(Event& event) = 0;
};

class Process {
 public:
  // Instead of a subject's number: what befalls the device itself.
  static constexpr std::uint64_t kDeviceEvents = ~std::uint64_t{0};

  // Of this process; never destroyed, as threads may be inside when a program ends.
  static Process& get();
  // A program that exits with connections has ended them, as where a kernel ends them for it.
  static void leave_all();
  // Whether a signal handler that runs now has interrupted a call that drives a device: nothing of
  // a device can be waited for.
  static bool is_in_call() { return Device::is_in_call(); }

  // 0, or an errno value where there is no device to be had: ENODEV for a wrong configuration, of
  // which one line on standard error tells once, EMFILE while it cannot be read.
  int configure();
  // After configure(): fixed, and empty when it was not.
  const std::vector<std::unique_ptr<Adapter>>& adapters() const { return adapters_; }
  // One of them by the program's pointer; null for another.
  Adapter* find(const ibv_device* device);
  // Opens all that can be opened, as rdma_cm does, which chooses among them by addresses. 0, or an
  // errno value where there is none.
  int open(std::vector<Adapter*>* opened);

  std::uint64_t add(std::shared_ptr<Subject> subject);
  void remove(std::uint64_t number);
  static void* as_context(std::uint64_t number) { return reinterpret_cast<void*>(number); }
  // To the subject it is about, if that is still there.
  void dispatch(Event& event);

  std::mutex cm;

 private:
  static void forget_parent();
  bool load();
  bool complain(const Error& why);
  bool add_adapter(const Config& config, const std::string& name);
  std::string wrong_companion() const;

  const Process* before_ = nullptr;  // of the process whose child the owner of this one was
  std::mutex mutex_;                 // of all below
  bool loaded_ = false;
  int unusable_ = 0;  // an errno value
  std::vector<std::unique_ptr<Adapter>> adapters_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Subject>> subjects_;
};

}  // namespace urnic::dropin

// The drop-in's state of one process: its devices (adapter.h) in the order of the configuration,
// and the receivers of their events. Created by the first call that needs it, never when the
// library is loaded; a forked child has its own.
//
// Locks, outermost first: Process::cm (for all of rdma_cm, cm_id.h), then the locks of single
// objects. No lock is held while waiting for a program's memory.
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

// A receiver of a device's events. Events refer to it by a number, so that a late event finds no
// subject instead of freed memory.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual void on_event(Event& event) = 0;
};

class Process {
 public:
  // Used instead of a subject's number: events of the device itself.
  static constexpr std::uint64_t kDeviceEvents = ~std::uint64_t{0};

  // The object of this process; never destroyed, because threads may be inside when a program ends.
  static Process& get();
  // Called at exit: ends the program's connections, as a kernel would do.
  static void leave_all();
  // True if a signal handler that runs now has interrupted a call that drives a device: then
  // waiting for a device would deadlock.
  static bool is_in_call() { return Device::is_in_call(); }

  // Returns 0, or an errno value if no device can be used: ENODEV for a wrong configuration, which
  // one line on standard error reports once, EMFILE while the configuration cannot be read.
  int configure();
  // Valid after configure(): it does not change any more, and is empty if configure() failed.
  const std::vector<std::unique_ptr<Adapter>>& adapters() const { return adapters_; }
  // The adapter of the program's pointer; null if it is not one of ours.
  Adapter* find(const ibv_device* device);
  // Opens all devices that can be opened, as rdma_cm does, which chooses among them by address.
  // Returns 0, or an errno value if none could be opened.
  int open(std::vector<Adapter*>* opened);

  std::uint64_t add(std::shared_ptr<Subject> subject);
  void remove(std::uint64_t number);
  static void* as_context(std::uint64_t number) { return reinterpret_cast<void*>(number); }
  // Delivers the event to its subject, if that still exists.
  void dispatch(Event& event);

  std::mutex cm;

 private:
  static void forget_parent();
  bool load();
  bool complain(const Error& why);
  bool add_adapter(const Config& config, const std::string& name);
  std::string wrong_companion() const;

  const Process* before_ = nullptr;  // list of the objects of this process's ancestors
  std::mutex mutex_;                 // for all members below
  bool loaded_ = false;
  int unusable_ = 0;  // errno value, 0 if usable
  std::vector<std::unique_ptr<Adapter>> adapters_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Subject>> subjects_;
};

}  // namespace urnic::dropin

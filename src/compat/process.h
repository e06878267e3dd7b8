// What one process has of the drop-in: its configuration, its one device, and the thread that
// brings the device's events to whom they concern. Made at the first call that needs it, never at
// load; a forked child has its own.
//
// Locks, outermost first: Process::cm (all of rdma_cm, cm_id.h), then what any object has of its
// own. None is held while a program's memory is waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "compat/exported.h"
#include "urnic/urnic.h"

namespace urnic::compat {

struct Context;
class Rendezvous;

// Who may get events of the device. Events name it by a number, so that one which comes late finds
// nobody instead of memory that is no longer there.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual void on_event(Event& event) = 0;
};

// The program's ibv_device, with room for what drivers of others look for behind it (a pointer to
// their own functions, which must be null).
struct DeviceSlot {
  ibv_device device;
  std::uint64_t zeros[8];
};

class Process {
 public:
  // Of this process; never destroyed, as threads may be inside when a program ends.
  static Process& get();

  // Whether there is a device to be had; what is wrong with the configuration is said once, in one
  // line on standard error.
  bool configured();
  // Opens the device if it is not open. 0 or an errno value.
  int open();
  // After open().
  Device& device() { return device_; }
  EventQueue& events() { return events_; }
  const Config& config() const { return config_; }
  // What the port is said to be.
  bool is_port_up() const;

  ibv_device* slot() { return &slot_.device; }
  // Locally administered, the same at every start.
  const std::uint8_t* mac() const { return mac_; }
  // The context that rdma_cm gives to everybody. Null with errno.
  ibv_context* shared_context();

  // Contexts hear of the port.
  void add_context(Context*);
  void remove_context(Context*);

  std::uint64_t add(std::shared_ptr<Subject> subject);
  void remove(std::uint64_t number);
  static void* as_context(std::uint64_t number) { return reinterpret_cast<void*>(number); }

  std::mutex cm;
  Rendezvous& rendezvous() { return *rendezvous_; }  // under cm

 private:
  Process();
  bool load();
  std::string wrong_companion() const;
  void serve();
  void dispatch(Event& event);
  void tell_contexts(ibv_event_type what);

  int next_ms();
  void expire();

  DeviceSlot slot_{};
  std::unique_ptr<Rendezvous> rendezvous_;
  std::uint8_t mac_[6] = {};
  std::mutex mutex_;  // of all below
  bool loaded_ = false, usable_ = false;
  bool over_kernel_tcp_ = false, is_memif_ = false;
  std::atomic<bool> had_link_{false};
  Config config_;
  Device device_;
  EventQueue events_;
  ibv_context* shared_ = nullptr;
  std::vector<Context*> contexts_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<Subject>> subjects_;
};

}  // namespace urnic::compat

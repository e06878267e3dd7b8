// The counters of one device as a file (docs/counters.md). Its process maps the file and raises the
// values in it, so other processes read them without asking, and they remain after the end of the
// process, whatever ended it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace urnic::counters {

struct Entry {
  char path[56];  // below ports/1/, as "counters/port_xmit_data"
  std::uint64_t value;
};

// bound: counters in a page; beyond: the others are not counted in the totals of ended processes;
// test: CounterFiles.TotalsHaveRoomForOneFullPage
inline constexpr std::size_t kMostEntries = 96;

// The device that a page belongs to: pages with the same names are added up.
struct DeviceName {
  char section[40];  // [device.NAME] of the configuration; empty if it has no sections
  char port[984];    // the setting `port`
};

struct Page {
  char magic[8];         // written last
  std::uint64_t id;      // random
  std::uint64_t merged;  // totals of ended processes: id of the page that was added last
  std::uint64_t entries;
  DeviceName device;
  Entry entry[kMostEntries];
};

inline constexpr char kMagic[9] = "urnicCP1";
static_assert(sizeof(Page) <= 8192 && offsetof(Page, entry) % sizeof(std::uint64_t) == 0);

// A page of a process ends with kEnding, and begins otherwise than one of totals.
inline constexpr char kEnding[] = ".counters", kTotals[] = "ended-";
// A file of a tree (urnic run --sysfs): a line "SHOWN<tab>SECTION<tab>PORT" for each device.
inline constexpr char kDevicesFile[] = "devices";

// How old a value may be that a tool reads, in milliseconds: the time from an event to its
// publication, and from one refreshing of a tree to the next.
inline constexpr int kLifespanMs = 100;

// bound: length of the texts that name a device with counters; limit: 39 and 983; beyond: it has no
// counters, and a line of the log says so; test: CounterPublisher.ATooLongNameIsRefused
inline constexpr std::size_t kSectionRoom = sizeof(DeviceName::section);
inline constexpr std::size_t kPortRoom = sizeof(DeviceName::port);

}  // namespace urnic::counters

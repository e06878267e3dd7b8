// The listeners, by service and address, and the requests that wait for them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/gate.h"
#include "ib_cm/events.h"

namespace urnic::ib_cm {

struct Listen {
  std::uint64_t service = 0;
  // nullopt: any; the any-address of an IP version: all addresses of that version.
  std::optional<IpAddress> local;
  Transport transport = Transport::Rc;  // that it serves; SIDR requests go to any listener
  // bound: pending requests of a RoCE listener; limit: the backlog of `listen` from one address,
  // four times as many in all; beyond: a REQ is dropped, counted, and repeated by the peer; test:
  // RefusalTest.AFloodOfReqsIsBoundedByTheBacklogAndAffectsNoConnection,
  // RefusalTest.OneAddressTakesAQuarterOfTheBacklog,
  // RefusalTest.ARequestOutlivesItsListenerAndAnAnsweredOneMakesRoom
  std::uint32_t backlog = 16;            // requests of one address that the owner has not answered
  std::shared_ptr<Gate> gate = nullptr;  // null: admits every peer
};

class Listeners {
 public:
  // 0: there is a listener for that service and address already.
  ListenerId open(const Listen&);
  void close(ListenerId id);

  struct Found {
    ListenerId id = 0;
    Listen what;
    std::shared_ptr<Gate> waiting;  // requests that wait for the owner's answer
  };
  // The listener for a request to `local`: that of the address itself before that of its IP
  // version, and that before one for any address. Null if none.
  Found* find(std::uint64_t service, const IpAddress& local);

 private:
  std::vector<Found> all_;  // in the order of their numbers
  ListenerId last_ = 0;
};

}  // namespace urnic::ib_cm

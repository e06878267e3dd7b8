// Connections by their own comm id, by the peer's, and by the peer's queue pair. Own ids are sparse
// and keyed: who has not been told one does not find it by counting (E-49).
//
// Allocates when a connection is made, and never else. Owned by one engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/hash_map.h"
#include "base/siphash.h"
#include "base/stag_form.h"
#include "ib_cm/connection.h"

namespace urnic::ib_cm {

class ConnectionTable {
 public:
  ConnectionTable(const SipKey& key, std::uint32_t most);

  // One more, with an id; null when there are as many as may be, or no memory.
  Connection* open();
  // Its id and its names of the peer's find nobody any more.
  void close(Connection* c) noexcept;

  Connection* find(Handle id);
  // Whose peer at `c.way.remote` calls it `remote_id`, or has queue pair `remote_qpn`.
  Connection* by_remote_id(const IpAddress& remote, std::uint32_t remote_id);
  Connection* by_remote_qpn(const IpAddress& remote, std::uint32_t remote_qpn);
  // Questions about services have names of their own.
  Connection* by_request_id(const IpAddress& remote, std::uint32_t request_id);
  // By its remote_id, and by its remote_qpn if that is not 0. False, and nothing has changed: one
  // of them is another's, or no memory.
  bool name(Connection* c);
  // by_remote_qpn() finds it no more.
  void free_remote_qpn(const Connection& c) noexcept {
    unname({c.way.remote, Kind::Qpn, c.remote_qpn}, &c);
  }

  std::size_t size() const { return size_; }
  // f(Connection&), which opens and closes none.
  template <class F>
  void for_each(F&& f) {
    for (const Entry& e : entries_) {
      if (e.connection != nullptr) f(*e.connection);
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  enum class Kind : std::uint32_t { Id, Qpn, Request };
  struct Key {
    IpAddress remote;
    Kind kind = Kind::Id;
    std::uint32_t number = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    SipKey key;
    std::uint64_t operator()(const Key& k) const;
  };
  struct Entry {
    std::unique_ptr<Connection> connection;
    std::uint32_t next_free = kNone;
    std::uint8_t use = 0;
  };

  Handle id_of(std::uint32_t index) const {
    return form_.stag(index + 1, form_.key(index + 1, entries_[index].use));
  }
  static Kind kind_of(const Connection& c);
  Connection* named(const Key& k);
  void unname(const Key& k, const Connection* c) noexcept;

  StagForm form_;
  std::uint32_t most_;
  std::vector<Entry> entries_;
  std::uint32_t first_free_ = kNone, last_free_ = kNone, free_ = 0;
  std::size_t size_ = 0;
  HashMap<Key, Connection*, Hash> names_;
};

}  // namespace urnic::ib_cm

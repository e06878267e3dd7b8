// Connections by their own comm id, by the peer's, and by the peer's queue pair. Own ids are sparse
// and keyed: an attacker cannot find one by counting (E-49).
//
// Allocates only when a connection is made. Owned by one engine.
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

  // Makes a connection with an id; null if the limit is reached, or out of memory.
  Connection* open();
  // Frees its id and the peer's id and queue pair number.
  void close(Connection* c) noexcept;

  Connection* find(Handle id);
  // The connection whose peer at `remote` has the comm id `remote_id`, or the queue pair
  // `remote_qpn`.
  Connection* by_remote_id(const IpAddress& remote, std::uint32_t remote_id);
  Connection* by_remote_qpn(const IpAddress& remote, std::uint32_t remote_qpn);
  // Service requests have a name space of their own.
  Connection* by_request_id(const IpAddress& remote, std::uint32_t request_id);
  // Makes it findable by its remote_id, and by its remote_qpn if that is not 0. False, and nothing
  // has changed: one of them is used by another connection, or out of memory.
  bool name(Connection* c);
  // by_remote_qpn() no longer finds it.
  void free_remote_qpn(const Connection& c) noexcept {
    unname({c.addresses.remote, Kind::Qpn, c.remote_qpn}, &c);
  }

  std::size_t size() const { return size_; }
  // Calls f(Connection&) for each; f must neither open nor close one.
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

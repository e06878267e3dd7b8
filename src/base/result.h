// Errors are values. Result<T, E> holds a value or an error; E is an enum or a small struct that
// describes the error in terms of the RFCs.
#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <variant>

namespace urnic {

template <class E>
struct Failure {
  E error;
};
template <class E>
constexpr Failure<E> fail(E e) {
  return Failure<E>{std::move(e)};
}

template <class T, class E>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Outcome(Failure<E> f) : v_(std::in_place_index<1>, std::move(f.error)) {}

  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() {
    assert(ok());
    return *std::get_if<0>(&v_);
  }
  const T& value() const {
    assert(ok());
    return *std::get_if<0>(&v_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const E& error() const {
    assert(!ok());
    return *std::get_if<1>(&v_);
  }

 private:
  std::variant<T, E> v_;
};

}  // namespace urnic

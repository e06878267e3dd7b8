#include "kernel_tcp/inbox.h"

#include <cstring>

namespace urnic::kernel_tcp {
namespace {

// If there is less room than this after the bytes, they are moved to the front.
constexpr std::size_t kEnough = InboxPool::kBlock / 2;

}  // namespace

std::unique_ptr<std::uint8_t[]> InboxPool::take() {
  ++lent_;
  if (free_.empty()) return std::make_unique_for_overwrite<std::uint8_t[]>(kBlock);
  auto block = std::move(free_.back());
  free_.pop_back();
  return block;
}

void InboxPool::give(std::unique_ptr<std::uint8_t[]> block) {
  --lent_;
  if (free_.size() < kKeep) free_.push_back(std::move(block));
}

std::span<std::uint8_t> Inbox::space() {
  if (!block_) {
    block_ = pool_->take();
    end_ -= begin_;
    if (end_ != 0) std::memcpy(block_.get(), aside_.data() + begin_, end_);
    begin_ = 0;
    pool_->count_set_aside(0, aside_.size());
    std::vector<std::uint8_t>().swap(aside_);
  } else if (begin_ != 0 && InboxPool::kBlock - end_ < kEnough) {
    std::memmove(block_.get(), block_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return {block_.get() + end_, InboxPool::kBlock - end_};
}

void Inbox::consume(std::size_t n) {
  begin_ += n;
  if (begin_ == end_) begin_ = end_ = 0;
}

void Inbox::clear() {
  begin_ = end_ = 0;
  settle();
}

void Inbox::settle() {
  if (block_ && (empty() || pool_->crowded())) {
    if (!empty()) {
      aside_.assign(block_.get() + begin_, block_.get() + end_);
      pool_->count_set_aside(aside_.size(), 0);
      end_ -= begin_;
      begin_ = 0;
    }
    pool_->give(std::move(block_));
  } else if (!block_ && empty() && !aside_.empty()) {
    pool_->count_set_aside(0, aside_.size());
    std::vector<std::uint8_t>().swap(aside_);
  }
}

}  // namespace urnic::kernel_tcp

// What is done when the program exits.
#pragma once

namespace urnic::compat {

// Does `work` on a thread of its own and waits for its end, `most_ms` at most.
//
// exit() may be called by a signal handler, and the frame that it interrupted, on this very thread,
// may hold any lock of ours: whoever waited for it here would wait for ever. The other thread waits
// instead, and the program leaves without what that frame stands in the way of. Nothing is done
// when there can be no thread.
void do_beside(void (*work)(), int most_ms);

}  // namespace urnic::compat

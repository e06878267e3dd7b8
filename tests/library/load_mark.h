// The prctl value that load_probe uses before and after it loads the library. No such option
// exists.
#pragma once

namespace urnic::test {

constexpr long kMark = 0x75726e69;

}  // namespace urnic::test

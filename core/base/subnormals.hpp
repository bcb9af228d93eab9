// Subnormal numbers: the last ones before 0.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace crfkit {

// Subnormal numbers become 0 while this lives: they carry no digits that matter and cost a hundred cycles
// each.
class FlushSubnormals {
  public:
#if defined(__SSE__)
    FlushSubnormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushSubnormals() { _mm_setcsr(before_); }

  private:
    unsigned before_;
#endif
};

}  // namespace crfkit

// For loops that look for something again and again, for a moment.
#pragma once

namespace crfkit {

// Lets the other thread of this core work meanwhile.
inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace crfkit

// Peak memory of a benchmark's process.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

// Returns the peak in KiB. (The rusage of a child process would include the peak of a larger parent process.)
inline uint64_t PeakKib() {
    std::ifstream status("/proc/self/status");
    for (std::string key; status >> key;) {
        if (uint64_t kib = 0; key == "VmHWM:" && status >> kib) {
            return kib;
        }
    }
    return 0;
}

// A probe of operating-system noise as the HPC field measures it (fixed work quantum, FWQ): on
// every core a thread, pinned and of normal priority, does the same small piece of work over and
// over and notes how much longer each took than the shortest. What is longer was taken by something
// else.
//
// usage: fwq SECONDS [QUANTUM_MICROSECONDS]
//
// Prints one line for each core and bucket: core, upper edge of the delay in microseconds, how many
// quanta; and for each core "core total QUANTA SHARE" where SHARE is the part of the time that was
// taken.

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr int kBuckets = 64;  // four for each doubling, from 0.5 microseconds on

struct Core {
  int cpu = 0;
  std::array<std::uint64_t, kBuckets> buckets{};
  std::uint64_t quanta = 0;
  double taken = 0;
  double total = 0;
};

std::uint64_t work(std::uint64_t rounds, std::uint64_t value) {
  for (std::uint64_t i = 0; i < rounds; ++i) {
    value = value * 6364136223846793005ULL + 1442695040888963407ULL;
  }
  return value;
}

double microseconds_of(std::uint64_t rounds, volatile std::uint64_t& sink) {
  const auto began = Clock::now();
  sink = work(rounds, sink);
  return std::chrono::duration<double, std::micro>(Clock::now() - began).count();
}

int bucket_of(double microseconds) {
  return microseconds <= 0.5
             ? 0
             : std::min(kBuckets - 1, 1 + static_cast<int>(4 * std::log2(microseconds / 0.5)));
}

double edge_of(int bucket) { return 0.5 * std::exp2(bucket / 4.0); }

void probe(Core& core, int seconds, double quantum) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core.cpu, &only);
  if (pthread_setaffinity_np(pthread_self(), sizeof only, &only) != 0) {
    std::perror("pthread_setaffinity_np");
    std::exit(1);
  }
  volatile std::uint64_t sink = 1;
  double shortest = 1e9;
  const std::uint64_t sample = 100'000;
  for (int i = 0; i < 200; ++i) {
    shortest = std::min(shortest, microseconds_of(sample, sink));
  }
  const auto rounds = static_cast<std::uint64_t>(static_cast<double>(sample) * quantum / shortest);
  std::vector<double> took;
  took.reserve(static_cast<std::size_t>(1.1e6 * seconds / quantum));
  const auto end = Clock::now() + std::chrono::seconds{seconds};
  while (Clock::now() < end) {
    took.push_back(microseconds_of(rounds, sink));
  }
  const double least = *std::min_element(took.begin(), took.end());
  for (const double each : took) {
    ++core.buckets[static_cast<std::size_t>(bucket_of(each - least))];
    core.taken += each - least;
    core.total += each;
  }
  core.quanta = took.size();
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 0;
  const double quantum = argc > 2 ? std::atof(argv[2]) : 1000;
  if (seconds <= 0 || quantum < 10) {
    std::fprintf(stderr, "usage: fwq SECONDS [QUANTUM_MICROSECONDS]\n");
    return 2;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    std::perror("sched_getaffinity");
    return 1;
  }
  std::vector<Core> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      cores.push_back({.cpu = cpu});
    }
  }
  std::vector<std::thread> threads;
  for (auto& core : cores) {
    threads.emplace_back([&core, seconds, quantum] { probe(core, seconds, quantum); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (const auto& core : cores) {
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      if (const auto count = core.buckets[static_cast<std::size_t>(bucket)]; count > 0) {
        std::printf("%d %.2f %llu\n", core.cpu, edge_of(bucket),
                    static_cast<unsigned long long>(count));
      }
    }
    std::printf("%d total %llu %.6f\n", core.cpu, static_cast<unsigned long long>(core.quanta),
                core.taken / core.total);
  }
  return 0;
}

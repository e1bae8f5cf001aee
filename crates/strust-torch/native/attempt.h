// No exception may leave a function that Rust calls. `attempt` writes the message to `why` and returns 1.
#pragma once
#include <cstdio>
#include <exception>

template <class F>
int attempt(char* why, size_t room, F f) {
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    std::snprintf(why, room, "%s", e.what());
  } catch (...) {
    std::snprintf(why, room, "an unknown exception");
  }
  return 1;
}

import Glibc

/// Whether the tests and the programs that they start were built with a sanitizer. A sanitizer needs additional memory
/// and time, so tests do less work under it and do not measure memory.
public enum Sanitizer {
  public static let isOn = ["__tsan_init", "__asan_init"].contains { (name: String) in dlsym(nil, name) != nil }

  /// Returns `count`, or a small part of it under a sanitizer.
  public static func reduce(_ count: Int) -> Int { isOn ? max(1, count / 20) : count }
}

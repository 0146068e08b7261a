import Glibc

/// Whether the tests, and with them the programs that they start, were built with a sanitizer, which costs memory and
/// time of its own: less is asked of what runs under one, and its memory says nothing.
public enum Sanitizer {
  public static let isOn = ["__tsan_init", "__asan_init"].contains { (name: String) in dlsym(nil, name) != nil }

  /// `count`, or a small part of it under a sanitizer.
  public static func reduce(_ count: Int) -> Int { isOn ? max(1, count / 20) : count }
}

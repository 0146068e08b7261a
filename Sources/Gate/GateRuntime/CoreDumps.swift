internal import Glibc

/// Prevents core dumps, because private keys and nonces are in the process's memory.
enum CoreDumps {
  /// Disables core files, and removes all memory from dumps that a program collects.
  ///
  /// The resource limit applies to files; only root can raise it again. The kernel ignores the limit if
  /// `core_pattern` pipes the dump to a program (core(5)), so the filter excludes every mapping. Errors are ignored;
  /// without /proc the system writes only files.
  static func forbid() {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    let filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC)
    guard filter >= 0 else { return }
    _ = write(filter, "0", 1)
    close(filter)
  }
}

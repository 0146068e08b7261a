internal import Glibc

/// What the system writes of a process that crashes: private keys and nonces are in its memory.
enum CoreDumps {
  /// Disables core dumps, or makes them empty of memory where a program receives them.
  ///
  /// The limit, which only root can raise again, is for files. The kernel does not consult it for a program
  /// (`core_pattern` with a pipe, core(5)): the filter leaves such a program without any mapping. A setting that
  /// cannot be changed stays as it is; a system without /proc writes files alone.
  static func forbid() {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    let filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC)
    guard filter >= 0 else { return }
    _ = write(filter, "0", 1)
    close(filter)
  }
}

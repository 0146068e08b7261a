internal import Glibc

/// What the system writes of a process that crashes: private keys and nonces are in its memory.
enum CoreDumps {
  /// Has none written, or one without memory where a program takes them.
  ///
  /// The limit, which nobody can raise again but root, is for files. The kernel does not ask it for a program
  /// (`core_pattern` with a pipe, core(5)): the filter leaves such a program without any mapping. What cannot be set stays
  /// as it is; a system without /proc writes files alone.
  static func forbid() {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    let filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC)
    guard filter >= 0 else { return }
    _ = write(filter, "0", 1)
    close(filter)
  }
}

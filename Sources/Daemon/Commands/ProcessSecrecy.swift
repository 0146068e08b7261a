internal import CLinux
internal import Glibc

/// Keeps the secrets of this process out of files that outlive it.
public enum ProcessSecrecy {
  /// Leaves memory out of core files, also of those that a debugger writes, and lets only root attach one. Call it
  /// before a secret is read.
  ///
  /// Swap is beyond its reach: encrypt it, or have none.
  public static func begin() {
    // Before the process is no longer dumpable: then its files in /proc belong to root.
    let filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC)
    if filter >= 0 {
      _ = write(filter, "0", 1)
      close(filter)
    }
    var none = rlimit()
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    _ = shim_forbid_dumps()
  }
}

internal import FoundationEssentials
internal import Glibc

/// The process metrics that Prometheus' own client libraries export.
public enum ProcessGauges {
  /// Adds them to `registry`.
  public static func register(in registry: MetricsRegistry) {
    registry.values("process_cpu_seconds_total", "User and system CPU time of the process.", kind: .counter) {
      var usage = rusage()
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
      return [Sample(seconds(usage.ru_utime) + seconds(usage.ru_stime))]
    }
    registry.values("process_resident_memory_bytes", "Resident memory of the process.") {
      let pages = fields(of: "/proc/self/statm").dropFirst().first ?? 0
      return [Sample(pages * Double(sysconf(Int32(_SC_PAGESIZE))))]
    }
    registry.values("process_open_fds", "Open file descriptors.") {
      let count = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
      return [Sample(Double(count))]
    }
    registry.values("process_max_fds", "Maximum number of open file descriptors.") {
      var limit = rlimit()
      guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return [] }
      return [Sample(Double(limit.rlim_cur))]
    }
  }

  private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

  private static func fields(of file: String) -> [Double] {
    guard let bytes = try? Data(contentsOf: URL(filePath: file)) else { return [] }
    return String(decoding: bytes, as: UTF8.self).split(separator: " ").compactMap { Double($0) }
  }
}

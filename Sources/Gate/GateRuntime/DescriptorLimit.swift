internal import Glibc

/// The limit of open file descriptors of the process.
enum DescriptorLimit {
  /// Raises the soft limit to the hard limit, because each session uses two descriptors.
  static func raise() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
  }
}

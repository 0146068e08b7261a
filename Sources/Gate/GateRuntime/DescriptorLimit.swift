internal import Glibc

/// The limit of open file descriptors of the process.
enum DescriptorLimit {
  /// Raises the soft limit to the hard limit, because each session uses two descriptors.
  static func raise() {
    guard var limit = current, limit.rlim_cur < limit.rlim_max else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
  }

  /// The number that descriptors of clients and upstreams must be below: an eighth of the limit, 64 at most, is left to
  /// operators, probes, the store and files. Clients who take all others do not stop a revocation.
  static var ceilingOfClients: Int32 {
    guard let limit = current.flatMap({ Int32(exactly: min($0.rlim_cur, rlim_t(Int32.max))) }) else { return .max }
    return limit - min(limit / 8, 64)
  }

  private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

  private static var current: rlimit? {
    var limit = rlimit()
    return getrlimit(resource, &limit) == 0 ? limit : nil
  }
}

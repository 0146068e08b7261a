internal import ByteCoding

/// How a request changes on its way to the upstream of a route.
public struct RequestRewrite: Sendable, Hashable {
  /// What replaces the path of the route in the target, in normal form: `/` to remove it; `nil` to leave the target as it
  /// is.
  let path: String?
  /// The value of `Host`; `nil` for the client's.
  let host: String?

  public init(path: String? = nil, host: String? = nil) {
    self.path = path
    self.host = host
  }

  /// The target for the upstream.
  ///
  /// - Parameters:
  ///   - target: The client's target, as sent. Its path is covered by the route: it begins with as many segments, which
  ///     may be escaped otherwise, and has no empty segment.
  ///   - route: The path of the route.
  func target(of target: String, below route: String) -> String {
    guard let path else { return target }
    var rest = target.utf8[...]
    let segments = route == "/" ? 0 : route.utf8.count { $0 == UInt8(ascii: "/") }
    for _ in 0..<segments {
      rest = rest.dropFirst().drop { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
    }
    let kept = String(decoding: rest, as: UTF8.self)
    let beginning = path == "/" ? "" : path
    // Of a target that ended with the path of the route nothing is left, or its query.
    return beginning.isEmpty && !kept.hasPrefix("/") ? "/" + kept : beginning + kept
  }
}

/// The maximum size of a message head.
struct HeadLimits: Sendable, Hashable {
  /// The number of bytes from the first line to the empty line, both included.
  var bytes = 16 << 10
  /// The number of field lines.
  var fields = 100

  /// For requests, which come from strangers.
  static let standard = HeadLimits()

  /// For requests to a listener whose operator allows another length.
  ///
  /// - Parameter bytes: The maximum length; one field is allowed for each 256 bytes, and at least 100.
  static func request(bytes: Int) -> HeadLimits { HeadLimits(bytes: bytes, fields: max(100, bytes >> 8)) }

  /// For responses of a server that the operator chose. Applications set many cookies, and long ones.
  ///
  /// - Parameter bytes: The maximum length; one field is allowed for each 256 bytes, and at least 256.
  static func response(bytes: Int = 64 << 10) -> HeadLimits {
    HeadLimits(bytes: bytes, fields: max(256, bytes >> 8))
  }

  /// Returns whether parsing `inbox` can have another result than before its last bytes, `received`, arrived: only a line
  /// feed can complete a head. Without this question, a head of single bytes would be scanned once for each byte.
  func mayDecide(_ inbox: [UInt8], after received: UnsafeRawBufferPointer) -> Bool {
    inbox.count == received.count || inbox.count >= bytes || received.contains(.lineFeed)
  }
}

extension HeadError {
  /// The text of a fault of a response, with the exceeded limit and its setting.
  func text(within limits: HeadLimits) -> String {
    switch self {
    case .headLength: "\(rawValue): more than \(limits.bytes) bytes (routes[].max_response_head)"
    case .fieldCount: "\(rawValue): more than \(limits.fields) (one for each 256 bytes of routes[].max_response_head)"
    default: rawValue
    }
  }
}

internal import AttestGate
internal import Transport

/// An order of sessions. Sessions with equal values are in the order in which they were opened.
public struct SessionOrder: Sendable, Hashable {
  public enum Column: String, Sendable, Hashable, CaseIterable { case opened, key, app, route, method, client }

  public let column: Column
  public let isDescending: Bool

  public init(_ column: Column, isDescending: Bool = false) {
    (self.column, self.isDescending) = (column, isDescending)
  }

  /// Reads the name of a column, with a dash in front for descending; `nil` for another text.
  public init?(_ text: String) {
    let isDescending = text.utf8.first == UInt8(ascii: "-")
    guard let column = Column(rawValue: isDescending ? String(text.dropFirst()) : text) else { return nil }
    self.init(column, isDescending: isDescending)
  }

  /// All texts that `init(_:)` reads.
  public static let texts = Column.allCases.flatMap { [$0.rawValue, "-" + $0.rawValue] }

  /// Calls `body` with the value by which the session is sorted, to be compared as bytes. Empty for `opened`, which the
  /// number of the session sorts.
  func withValue<Result>(of place: SessionPlace, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    switch column {
    case .opened: body(UnsafeBufferPointer(start: nil, count: 0))
    case .key: Self.withBytes(of: place.keyHash?.text ?? "", body)
    case .app: Self.withBytes(of: place.app?.text ?? "", body)
    case .route: Self.withBytes(of: place.record.route, body)
    case .method: Self.withBytes(of: place.method, body)
    case .client:
      switch place.record.address {
      case .ipv4(let bytes, let port): Self.withValue(4, bytes, port, body)
      case .ipv6(let bytes, let port): Self.withValue(6, bytes, port, body)
      case .unix(let path): Self.withBytes(of: path, body)
      }
    }
  }

  private static func withBytes<Result>(
    of text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) -> Result {
    var text = text
    return text.withUTF8(body)
  }

  /// The numbers of an address, so that 9.0.0.1 precedes 10.0.0.1. On the stack: a list asks for those of all sessions.
  private static func withValue<Result>(
    _ family: UInt8, _ bytes: [UInt8], _ port: UInt16, _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) -> Result {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: bytes.count + 3) { value in
      value[0] = family
      for (index, byte) in bytes.enumerated() { value[1 + index] = byte }
      value[value.count - 2] = UInt8(port >> 8)
      value[value.count - 1] = UInt8(port & 0xFF)
      return body(UnsafeBufferPointer(value))
    }
  }
}

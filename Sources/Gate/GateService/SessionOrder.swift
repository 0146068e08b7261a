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

  /// Calls `body` with the value by which `record` is sorted, to be compared as bytes. Empty for `opened`, which the
  /// number of the session sorts.
  func withValue<Result>(of record: SessionRecord, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    switch column {
    case .opened: body(UnsafeBufferPointer(start: nil, count: 0))
    case .key: Self.withBytes(of: record.principal.keyHash?.text ?? "", body)
    case .app: Self.withBytes(of: record.principal.app?.text ?? "", body)
    case .route: Self.withBytes(of: record.route, body)
    case .method: Self.withBytes(of: record.principal.method, body)
    case .client:
      switch record.address {
      case .ipv4(let bytes, let port): Self.value(4, bytes, port).withUnsafeBufferPointer(body)
      case .ipv6(let bytes, let port): Self.value(6, bytes, port).withUnsafeBufferPointer(body)
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

  /// The numbers of an address, so that 9.0.0.1 precedes 10.0.0.1.
  private static func value(_ family: UInt8, _ bytes: [UInt8], _ port: UInt16) -> [UInt8] {
    var value = [family]
    value += bytes
    value.append(UInt8(port >> 8))
    value.append(UInt8(port & 0xFF))
    return value
  }
}

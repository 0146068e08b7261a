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

  /// The value by which `record` is sorted, to be compared as bytes.
  func value(of record: SessionRecord) -> [UInt8] {
    switch column {
    case .opened: []
    case .key: Array((record.principal.keyHash?.text ?? "").utf8)
    case .app: Array((record.principal.app?.text ?? "").utf8)
    case .route: Array(record.route.utf8)
    case .method: Array(record.principal.method.utf8)
    case .client:
      switch record.address {
      case .ipv4(let bytes, let port): Self.value(4, bytes, port)
      case .ipv6(let bytes, let port): Self.value(6, bytes, port)
      case .unix(let path): Array(path.utf8)
      }
    }
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

/// The first ones of many values, in order, without sorting all of them.
struct FirstElements<Element> {
  private let count: Int
  private let precedes: (Element, Element) -> Bool
  private(set) var sorted: [Element] = []

  /// - Parameters:
  ///   - count: How many are kept. Meant for some hundreds.
  init(_ count: Int, by precedes: @escaping (Element, Element) -> Bool) {
    (self.count, self.precedes) = (max(0, count), precedes)
  }

  mutating func add(_ element: Element) {
    if sorted.count >= count {
      guard let last = sorted.last, precedes(element, last) else { return }
      sorted.removeLast()
    }
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = (low + high) / 2
      if precedes(element, sorted[middle]) { high = middle } else { low = middle + 1 }
    }
    sorted.insert(element, at: low)
  }
}

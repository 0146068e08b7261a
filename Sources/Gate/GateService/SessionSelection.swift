internal import ByteCoding

/// The place of a session in an order: pages continue after it, also when the session itself has ended.
public struct SessionCursor: Sendable, Hashable {
  /// The value by which the session is sorted; empty for `opened`.
  let value: [UInt8]
  /// The place of the session in the order of opening.
  let number: UInt64

  init(value: [UInt8], number: UInt64) { (self.value, self.number) = (value, number) }

  /// The longest value in a text: that of a route's path or an app's name is shorter.
  private static let longestValue = 4096

  /// Reads a cursor of `order`; `nil` for a text of another form.
  init?(_ text: String, in order: SessionOrder) {
    guard text.utf8.count <= 32 + Self.longestValue * 4 / 3 else { return nil }
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let hasValue = order.column != .opened
    guard parts.count == (hasValue ? 2 : 1), let number = UInt64(parts[0]) else { return nil }
    guard let value = hasValue ? Base64URL.decode(parts[1]) : [] else { return nil }
    self.init(value: value, number: number)
  }

  /// The text that `init(_:in:)` reads: the number, and the value in base64url if `order` has one.
  func text(in order: SessionOrder) -> String {
    order.column == .opened ? "\(number)" : "\(number).\(Base64URL.encode(value))"
  }
}

/// Finds a page of sessions in one pass over all of them, in any sequence, and keeps no more than the page.
///
/// The first eight bytes of its value decide almost every session: it is compared as a number, and not copied.
struct SessionSelection {
  private struct Entry {
    let prefix: UInt64
    let number: UInt64
    let place: SessionPlace
  }

  private let order: SessionOrder
  private let cursor: (prefix: UInt64, place: SessionCursor)?
  private let limit: Int
  /// In order, at most one more than the page. Not in order while `isShort` is false.
  private var entries: [Entry] = []

  /// - Parameters:
  ///   - cursor: The session before the page; `nil` for the first page.
  ///   - limit: The maximum number of sessions of the page.
  init(_ order: SessionOrder, after cursor: SessionCursor?, limit: Int) {
    self.order = order
    self.limit = max(0, limit)
    self.cursor = cursor.map { cursor in
      (order.column == .opened ? cursor.number : cursor.value.withUnsafeBufferPointer(Self.prefix), cursor)
    }
  }

  /// Whether entries are kept in order. A long page is sorted at the end instead.
  private var isShort: Bool { limit <= 1000 }

  /// Whether the sessions of the page are known if sessions are added in the order in which they were opened.
  var isFull: Bool { entries.count > limit }

  /// Of the numbers of sessions, those that can be on the page. In the order of opening, they are in that order, so that
  /// sessions need be added only until the page is full.
  func candidates(_ numbers: [UInt64]) -> [UInt64] {
    guard order.column == .opened else { return numbers }
    guard let cursor = cursor?.place.number else {
      return order.isDescending ? numbers.sorted(by: >) : numbers.sorted()
    }
    return order.isDescending
      ? numbers.filter { $0 < cursor }.sorted(by: >) : numbers.filter { $0 > cursor }.sorted()
  }

  mutating func add(_ place: SessionPlace, number: UInt64) {
    let prefix = order.column == .opened ? number : order.withValue(of: place, Self.prefix)
    if let cursor, !isAfter(cursor, prefix, number, place) { return }
    guard isShort else {
      entries.append(Entry(prefix: prefix, number: number, place: place))
      return
    }
    if isFull, let last = entries.last {
      guard precedes(prefix, number, place, last) else { return }
      entries.removeLast()
    }
    let entry = Entry(prefix: prefix, number: number, place: place)
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if precedes(entry, entries[middle]) { high = middle } else { low = middle + 1 }
    }
    entries.insert(entry, at: low)
  }

  /// The sessions of the page in order, and the cursor of the next page; `nil` if no session follows.
  func page() -> (records: [SessionRecord], next: SessionCursor?) {
    let sorted = isShort ? entries : entries.sorted(by: precedes)
    let page = sorted.prefix(limit)
    guard sorted.count > page.count, let last = page.last else { return (page.map(\.place.record), nil) }
    let value = order.withValue(of: last.place) { Array($0) }
    return (page.map(\.place.record), SessionCursor(value: value, number: last.number))
  }

  private func precedes(_ one: Entry, _ other: Entry) -> Bool {
    precedes(one.prefix, one.number, one.place, other)
  }

  /// Whether a session, with the prefix of its value, precedes an entry.
  private func precedes(_ prefix: UInt64, _ number: UInt64, _ place: SessionPlace, _ entry: Entry) -> Bool {
    if prefix != entry.prefix { return (prefix < entry.prefix) != order.isDescending }
    let order = order
    let sign = order.withValue(of: place) { value in
      order.withValue(of: entry.place) { Self.compare(value, $0) }
    }
    return sign == 0 ? number < entry.number : (sign < 0) != order.isDescending
  }

  private func isAfter(
    _ cursor: (prefix: UInt64, place: SessionCursor), _ prefix: UInt64, _ number: UInt64, _ place: SessionPlace
  ) -> Bool {
    if prefix != cursor.prefix { return (prefix > cursor.prefix) != order.isDescending }
    let sign = cursor.place.value.withUnsafeBufferPointer { value in
      order.withValue(of: place) { Self.compare($0, value) }
    }
    return sign == 0 ? number > cursor.place.number : (sign > 0) != order.isDescending
  }

  /// The first eight bytes as a number that compares like them; shorter values end with zeros.
  private static func prefix(_ value: UnsafeBufferPointer<UInt8>) -> UInt64 {
    var prefix: UInt64 = 0
    for index in 0..<8 { prefix = prefix << 8 | (index < value.count ? UInt64(value[index]) : 0) }
    return prefix
  }

  /// Compares the bytes: below, at or above 0.
  private static func compare(_ one: UnsafeBufferPointer<UInt8>, _ other: UnsafeBufferPointer<UInt8>) -> Int {
    for index in 0..<min(one.count, other.count) where one[index] != other[index] {
      return one[index] < other[index] ? -1 : 1
    }
    return one.count - other.count
  }
}

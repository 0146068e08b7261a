/// How much a decoder takes.
public struct CBORLimits: Sendable, Hashable {
  /// The maximum size of the input in bytes.
  public var bytes: Int
  /// How deep arrays, maps and tags may be inside of each other; a string or number alone has depth 0.
  public var depth: Int
  /// Data items in all, keys included.
  public var items: Int

  /// Creates limits.
  public init(bytes: Int = 16384, depth: Int = 8, items: Int = 1024) {
    self.bytes = bytes
    self.depth = depth
    self.items = items
  }
}

/// The widths in which a decoder takes floats.
public enum CBORFloatWidths: Sendable, Hashable {
  /// The shortest that keeps the value, with one form for what is not a number (RFC 8949 section 4.2.1).
  case shortest
  /// Each of the three, and what is not a number with whatever bits. CTAP2's canonical form, in which authenticators
  /// write, leaves floats as they are: "the representations of any floating-point values are not changed". Keys of a
  /// map that are floats then may stand for the same value in two widths.
  case any
}

extension CBORValue {
  /// The one data item that `bytes` is.
  ///
  /// Strict, so that no two encodings that are taken stand for the same value, but for the order of a map's keys (and
  /// for floats, where `floats` says so):
  /// definite lengths, shortest forms, no key twice, nothing behind the item (RFC 8949 section 4.2.1, of which the
  /// order is not asked). Nothing is allocated for a length before as many bytes are there.
  ///
  /// Refused besides, since libcbor knows nothing of them: simple values that are not assigned, and the tags 6 to 20.
  public init(
    decoding bytes: some Collection<UInt8>, limits: CBORLimits = CBORLimits(), floats: CBORFloatWidths = .shortest
  ) throws(CBORError) {
    guard bytes.count <= limits.bytes else { throw .tooLong(bytes.count, limit: limits.bytes) }
    var parser = CBORParser(bytes: Array(bytes), limits: limits, floats: floats)
    self = try parser.value(depth: 0)
    guard parser.isAtEnd else { throw .trailingBytes(offset: parser.offset) }
  }

  /// The data item that `bytes` begins with, as strictly read, and how many bytes it takes: for structures that put
  /// something behind it, as WebAuthn's authenticator data does. The bytes behind count against `limits.bytes` too, and
  /// are not looked at.
  public static func first(
    in bytes: some Collection<UInt8>, limits: CBORLimits = CBORLimits(), floats: CBORFloatWidths = .shortest
  ) throws(CBORError) -> (value: CBORValue, count: Int) {
    guard bytes.count <= limits.bytes else { throw .tooLong(bytes.count, limit: limits.bytes) }
    var parser = CBORParser(bytes: Array(bytes), limits: limits, floats: floats)
    let value = try parser.value(depth: 0)
    return (value, parser.offset)
  }
}

/// The keys of a map, as they are encoded.
private struct KeyEncodings {
  private static let mostCompared = 8
  // Most maps have a handful of keys, which are compared sooner than hashed.
  private var few: [ArraySlice<UInt8>] = []
  private var many: Set<ArraySlice<UInt8>> = []

  /// `false` if the key is there already.
  mutating func insert(_ key: ArraySlice<UInt8>) -> Bool {
    guard few.count >= Self.mostCompared else {
      if few.contains(key) { return false }
      few.append(key)
      return true
    }
    return !few.contains(key) && many.insert(key).inserted
  }
}

/// Builds values from libcbor's events.
private struct CBORParser {
  private let bytes: [UInt8]
  private let limits: CBORLimits
  private let floats: CBORFloatWidths
  private(set) var offset = 0
  private var items = 0

  init(bytes: [UInt8], limits: CBORLimits, floats: CBORFloatWidths) {
    self.bytes = bytes
    self.limits = limits
    self.floats = floats
  }

  var isAtEnd: Bool { offset == bytes.count }

  mutating func value(depth: Int) throws(CBORError) -> CBORValue {
    guard depth <= limits.depth else { throw .tooDeep(offset: offset) }
    guard items < limits.items else { throw .tooManyItems(limit: limits.items) }
    items += 1
    let start = offset
    switch try nextEvent() {
    case .unsigned(let number): return .unsigned(number)
    case .negative(let number): return .negative(number)
    case .bytes(let bytes): return .bytes(bytes)
    case .text(let bytes): return .text(try text(bytes, at: start))
    case .array(let count): return .array(try array(count: count, at: start, depth: depth))
    case .map(let count): return .map(try map(count: count, at: start, depth: depth))
    case .tag(let tag): return .tagged(tag, try value(depth: depth + 1))
    case .float(let number): return try float(number, at: start)
    case .boolean(let truth): return .boolean(truth)
    case .null: return .null
    case .undefined: return .undefined
    case .indefinite: throw .indefiniteLength(offset: start)
    }
  }

  private mutating func nextEvent() throws(CBORError) -> CBOREvent {
    let start = offset
    switch CBOREvent.first(in: bytes[start...]) {
    case .truncated: throw .truncated(offset: start)
    case .malformed: throw .malformed(offset: start)
    case .event(let event, let count):
      offset += count
      if let argument = event.argument, bytes[start] & 0x1F != CBORHead.shortestInformation(for: argument) {
        throw .notShortest(offset: start)
      }
      return event
    }
  }

  private mutating func array(count: UInt64, at start: Int, depth: Int) throws(CBORError) -> [CBORValue] {
    let count = try bounded(count, bytesEach: 1, at: start)
    var values: [CBORValue] = []
    for _ in 0..<count { values.append(try value(depth: depth + 1)) }
    return values
  }

  private mutating func map(count: UInt64, at start: Int, depth: Int) throws(CBORError) -> CBORMap {
    let count = try bounded(count, bytesEach: 2, at: start)
    var keys = KeyEncodings()
    var pairs: [CBORMap.Pair] = []
    for _ in 0..<count {
      let keyStart = offset
      let key = try value(depth: depth + 1)
      guard keys.insert(bytes[keyStart..<offset]) else { throw .duplicateKey(offset: keyStart) }
      pairs.append(CBORMap.Pair(key, try value(depth: depth + 1)))
    }
    return CBORMap(pairs)
  }

  /// A count of elements that the remaining bytes could hold.
  private func bounded(_ count: UInt64, bytesEach: UInt64, at start: Int) throws(CBORError) -> Int {
    guard count <= UInt64(bytes.count - offset) / bytesEach else { throw .truncated(offset: start) }
    return Int(count)
  }

  private func text(_ bytes: [UInt8], at start: Int) throws(CBORError) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    // Decoding repairs what is not UTF-8, and thereby changes it.
    guard text.utf8.elementsEqual(bytes) else { throw .invalidText(offset: start) }
    return text
  }

  private func float(_ number: Double, at start: Int) throws(CBORError) -> CBORValue {
    guard floats == .any || CBORValue.float(number).encoded[...] == bytes[start..<offset] else {
      throw .notShortest(offset: start)
    }
    return .float(number)
  }
}

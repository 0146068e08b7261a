/// The limits of a decoder.
public struct CBORLimits: Sendable, Hashable {
  /// The maximum size of the input in bytes.
  public var bytes: Int
  /// The maximum nesting of arrays, maps and tags. A single string or number has depth 0.
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

/// The widths of floats that a decoder accepts.
public enum CBORFloatWidths: Sendable, Hashable {
  /// Only the shortest width that keeps the value, with one form for NaN (RFC 8949 section 4.2.1).
  case shortest
  /// All three widths, and NaN with any bits. CTAP2's canonical form, which authenticators use, leaves floats
  /// unchanged: "the representations of any floating-point values are not changed".
  case any
}

extension CBORValue {
  /// Decodes bytes that are exactly one data item.
  ///
  /// Strict: definite lengths, shortest forms, no repeated key, and no byte after the item (RFC 8949 section 4.2.1,
  /// except for the order of keys). So two accepted encodings of one value differ at most in the order of a map's
  /// keys, and in floats if `floats` allows it. Memory for a length is allocated only when as many bytes are present.
  ///
  /// Also refused, because libcbor does not support them: unassigned simple values.
  public init(
    decoding bytes: some Collection<UInt8>, limits: CBORLimits = CBORLimits(), floats: CBORFloatWidths = .shortest
  ) throws(CBORError) {
    guard bytes.count <= limits.bytes else { throw .tooLong(bytes.count, limit: limits.bytes) }
    var parser = CBORParser(bytes: Array(bytes), limits: limits, floats: floats)
    self = try parser.value(depth: 0)
    guard parser.isAtEnd else { throw .trailingBytes(offset: parser.offset) }
  }

  /// Decodes the data item at the beginning of `bytes` as strictly, and returns its length: for structures with
  /// further bytes after it, such as WebAuthn's authenticator data. The further bytes count against `limits.bytes`
  /// and are not read.
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

  /// Returns the number of elements, which the remaining bytes must be able to contain.
  private func bounded(_ count: UInt64, bytesEach: UInt64, at start: Int) throws(CBORError) -> Int {
    guard count <= UInt64(bytes.count - offset) / bytesEach else { throw .truncated(offset: start) }
    return Int(count)
  }

  private func text(_ bytes: [UInt8], at start: Int) throws(CBORError) -> String {
    // Most texts are ASCII, for which the general check costs ten times as much.
    if bytes.reduce(0, |) < 0x80 { return String(decoding: bytes, as: UTF8.self) }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw .invalidText(offset: start) }
    return text
  }

  private func float(_ number: Double, at start: Int) throws(CBORError) -> CBORValue {
    guard floats == .any || CBORValue.float(number).encoded[...] == bytes[start..<offset] else {
      throw .notShortest(offset: start)
    }
    return .float(number)
  }
}

/// The head of one data item, and where it is: for programs that show an encoding as it is.
///
/// An item of an array, a map or a tag is only its head; its elements are the next items.
public struct CBORItem: Sendable, Hashable {
  /// What the head says.
  public enum Content: Sendable, Hashable {
    /// A number from 0 to 2^64 - 1.
    case unsigned(UInt64)
    /// The number -1 - `n`.
    case negative(UInt64)
    /// A byte string; the range is that of its bytes.
    case bytes(Range<Int>)
    /// A text string; the range is that of its bytes, which may be no UTF-8.
    case text(Range<Int>)
    /// An array of so many elements.
    case array(UInt64)
    /// A map of so many pairs.
    case map(UInt64)
    /// A tag of the next item.
    case tag(UInt64)
    /// A float of any width.
    case float(Double)
    /// `true` or `false`.
    case boolean(Bool)
    /// The simple value `null`.
    case null
    /// The simple value `undefined`.
    case undefined
    /// The start of a byte string, text string, array or map of indefinite length: major type 2, 3, 4 or 5.
    case indefinite(majorType: UInt8)
    /// The end of the innermost item of indefinite length.
    case end
  }

  /// The offset of the first byte.
  public let offset: Int
  /// The number of bytes of the head: initial byte and argument.
  public let head: Int
  /// What the head says.
  public let content: Content
  /// Whether number or length are in as few bytes as possible. Floats are not judged.
  public let isShortest: Bool
}

/// Reads the heads of data items one after another, without a limit of depth and without memory for what they announce.
///
/// Lenient, where `CBORValue(decoding:)` is strict: indefinite lengths and long forms are reported and not refused.
/// Whether a break fits, and which elements belong together, is for the caller.
public struct CBORItemReader: Sendable {
  private let bytes: [UInt8]
  private let end: Int
  /// The offset of the next item.
  public private(set) var offset: Int

  /// A reader of `range` of `bytes`. Offsets count from the first byte of `bytes`.
  ///
  /// - Precondition: `range` is within the array.
  public init(_ bytes: [UInt8], range: Range<Int>) {
    precondition(range.lowerBound >= 0 && range.upperBound <= bytes.count)
    self.bytes = bytes
    (offset, end) = (range.lowerBound, range.upperBound)
  }

  /// Whether no byte is left.
  public var isAtEnd: Bool { offset == end }

  /// Reads the next head. The bytes of a string are skipped.
  ///
  /// - Throws: `.truncated` if the bytes end inside of the head or the string, `.malformed` if no item is here.
  public mutating func next() throws(CBORError) -> CBORItem {
    let start = offset
    switch CBOREvent.first(in: bytes[start..<end]) {
    case .truncated: throw .truncated(offset: start)
    case .malformed: throw .malformed(offset: start)
    case .event(let event, let count):
      offset += count
      let (content, string) = Self.content(of: event, upTo: offset, initial: bytes[start])
      let isShortest = event.argument.map { bytes[start] & 0x1F == CBORHead.shortestInformation(for: $0) } ?? true
      return CBORItem(offset: start, head: count - string, content: content, isShortest: isShortest)
    }
  }

  /// - Returns: The content, and the number of bytes of a string.
  private static func content(
    of event: CBOREvent, upTo end: Int, initial: UInt8
  ) -> (content: CBORItem.Content, string: Int) {
    switch event {
    case .unsigned(let number): (.unsigned(number), 0)
    case .negative(let number): (.negative(number), 0)
    case .bytes(let bytes): (.bytes(end - bytes.count..<end), bytes.count)
    case .text(let bytes): (.text(end - bytes.count..<end), bytes.count)
    case .array(let count): (.array(count), 0)
    case .map(let count): (.map(count), 0)
    case .tag(let tag): (.tag(tag), 0)
    case .float(let number): (.float(number), 0)
    case .boolean(let truth): (.boolean(truth), 0)
    case .null: (.null, 0)
    case .undefined: (.undefined, 0)
    case .indefinite: (initial == 0xFF ? .end : .indefinite(majorType: initial >> 5), 0)
    }
  }
}

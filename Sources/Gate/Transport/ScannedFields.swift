/// The places of a head's fields in its bytes, collected while the head is scanned.
///
/// In almost every head, each line is already as `HeaderFields` keeps it, so that the lines are copied in one piece.
public struct ScannedFields: Sendable {
  /// The range of all lines.
  public private(set) var range: Range<Int>
  /// The places, relative to the beginning of `range`.
  private(set) var places: [HeaderFields.Place] = []
  private(set) var marks: UInt64 = 0
  /// The ranges of the values, relative to the beginning of `range`; empty while `isCanonical` is `true`.
  private(set) var values: [Range<Int>] = []
  /// Whether each line is `name: value` and CRLF.
  private(set) var isCanonical = true
  /// Whether a value is not UTF-8.
  public private(set) var hasInvalidText = false

  /// The number of fields.
  public var count: Int { places.count }

  /// - Parameter start: The index of the first line.
  public init(at start: Int) {
    range = start..<start
    places.reserveCapacity(Self.usualCount)
  }

  /// The number of fields that most heads do not exceed, with those that the gate adds.
  private static let usualCount = 16

  /// Adds the line that begins at the end of `range`.
  ///
  /// - Parameters:
  ///   - value: The range of the value in `bytes`, without surrounding white space.
  ///   - lineEnd: The index of the line's CRLF.
  ///   - isText: Whether the value is UTF-8.
  public mutating func append(
    in bytes: UnsafeBufferPointer<UInt8>, name: Range<Int>, value: Range<Int>, lineEnd: Int, isText: Bool
  ) {
    // The lines are copied in one piece, so nothing may be between them that was not checked.
    precondition(name.lowerBound == range.upperBound, "a line begins where the one before ends")
    let start = range.lowerBound
    range = start..<lineEnd + 2
    if !isText { hasInvalidText = true }
    let place = HeaderFields.Place(
      start: name.lowerBound - start, name: UnsafeBufferPointer(rebasing: bytes[name]), end: lineEnd - start,
      isText: isText)
    let isCanonical =
      value.lowerBound == name.upperBound + 2 && bytes[name.upperBound + 1] == UInt8(ascii: " ")
      && value.upperBound == lineEnd
    if !isCanonical && self.isCanonical {
      self.isCanonical = false
      values = places.map(\.value)
    }
    if !self.isCanonical { values.append(value.lowerBound - start..<value.upperBound - start) }
    places.append(place)
    marks |= place.key.mark
  }
}

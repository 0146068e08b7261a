internal import ByteCoding

/// A part of an encoding: its place, its name, its content and what it means.
public struct InspectedNode: Sendable, Hashable {
  /// The offset of the first byte in the decoded input. Below a part that was decoded again, such as the payload of a
  /// JWT, offsets count from the first byte of that part; its `meaning` says so.
  public var offset: Int
  /// The number of bytes before the content: of the tag and length in DER, of the head in CBOR. 0 for a field of fixed
  /// size.
  public var header: Int
  /// The number of bytes of the content, without the header and without the end mark of an indefinite length.
  public var length: Int
  /// The name of the field; for a part without one its type.
  public var name: String
  /// The type in the encoding, such as `INTEGER` or `map of 3`; empty for a field of fixed size.
  public var type: String
  /// The content as text on one line, shortened; `nil` if `children` show it. It may come from a stranger.
  public var value: String?
  /// What the field means.
  public var meaning: String?
  /// The rule of the encoding that this part breaks.
  public var fault: String?
  /// The parts inside of this one, in their order.
  public var children: [InspectedNode] = []

  /// Creates a part without children.
  public init(
    offset: Int, header: Int = 0, length: Int, name: String, type: String = "", value: String? = nil,
    meaning: String? = nil, fault: String? = nil
  ) {
    (self.offset, self.header, self.length) = (offset, header, length)
    (self.name, self.type, self.value, self.meaning, self.fault) = (name, type, value, meaning, fault)
  }

  /// Where the encoding is broken.
  static func broken(at offset: Int, _ reason: String) -> InspectedNode {
    InspectedNode(offset: offset, length: 0, name: "error", value: reason, fault: reason)
  }

  /// This part and all below it, from front to back, each with its depth.
  public var flattened: [(depth: Int, node: InspectedNode)] {
    var result: [(Int, InspectedNode)] = []
    append(to: &result, depth: 0)
    return result
  }

  private func append(to result: inout [(Int, InspectedNode)], depth: Int) {
    result.append((depth, self))
    for child in children { child.append(to: &result, depth: depth + 1) }
  }
}

/// Values on one line.
enum ValueText {
  /// Longer byte strings are shown by their beginning.
  private static let mostBytes = 80
  private static let fewBytes = 24
  private static let mostCharacters = 120

  /// Bytes in hex.
  static func hex(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.count <= mostBytes ? Hex.encode(bytes) : Hex.encode(bytes.prefix(fewBytes)) + "…"
  }

  /// A text in quotation marks; hex if it is not UTF-8.
  static func text(_ bytes: ArraySlice<UInt8>) -> String {
    // Four bytes make one character at most; a part of one at the end would not be UTF-8.
    guard let text = String(validating: bytes, as: UTF8.self) else { return hex(bytes) }
    return quoted(text)
  }

  /// `text` in quotation marks, shortened.
  static func quoted(_ text: String) -> String {
    let scalars = text.unicodeScalars
    let short = String(String.UnicodeScalarView(scalars.prefix(mostCharacters)))
    return JSONText.quote(short) + (short.utf8.count < text.utf8.count ? "…" : "")
  }

  /// A number or a literal as it is written, which is ASCII, shortened.
  static func word(_ text: String) -> String {
    text.utf8.count <= mostCharacters ? text : text.prefix(mostCharacters) + "…"
  }

  /// Seconds since 1970 with their date, if it has one.
  static func seconds(_ number: Int64) -> String {
    guard (0...253_402_300_799).contains(number) else { return "\(number)" }
    return "\(number) (\(Timestamp(seconds: number)))"
  }
}

/// The person at a console, in a request to the admin server of its service: a header field with the name in UTF-8,
/// percent-encoded.
///
/// The name is what the client of the admin server says, for the log and the history. It gives no rights.
public enum ConsolePersonField {
  /// The name of the field.
  public static let name = "X-Console-Person"
  /// The maximum bytes of a person's name.
  public static let mostBytes = 384

  /// Returns the value of the field for a person.
  public static func encode(_ person: String) -> String {
    person.utf8.map { byte in
      isPlain(byte) ? String(Unicode.Scalar(byte)) : "%" + Hex.encode([byte]).uppercased()
    }.joined()
  }

  /// Returns the person of a field; `nil` for a value that is too long, is malformed, or has characters that a log or a
  /// page would show as something else.
  public static func decode(_ value: String) -> String? {
    guard value.utf8.count <= 3 * mostBytes else { return nil }
    var bytes: [UInt8] = []
    var rest = value.utf8[...]
    while let byte = rest.popFirst() {
      if isPlain(byte) {
        bytes.append(byte)
        continue
      }
      guard byte == UInt8(ascii: "%"), let high = rest.popFirst().flatMap(digit),
        let low = rest.popFirst().flatMap(digit)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    guard (1...mostBytes).contains(bytes.count), let person = String(validating: bytes, as: UTF8.self),
      TerminalText.printable(person).hasSameBytes(as: person), !person.utf8.contains(UInt8(ascii: "\""))
    else { return nil }
    return person
  }

  /// The unreserved characters of RFC 3986, section 2.3.
  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}

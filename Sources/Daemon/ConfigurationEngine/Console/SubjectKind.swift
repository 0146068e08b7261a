extension Kind where Value == String {
  /// The subject of a certificate as both services write it (RFC 2253): `CN=alice,O=Example`.
  public static var subject: Kind {
    let text = Kind.text(form: "a subject in the form of RFC 2253: `CN=MudApp Debug Client`")
    return Kind(name: text.name, form: text.form, schema: text.schema, example: text.example) {
      value throws(InvalidSetting) in
      let value = try text.read(value)
      var rest = Substring(value)
      repeat { try takePart(&rest, of: value) } while !rest.isEmpty
      return value
    }
  }

  /// Takes a type and its value, and the separator behind them.
  private static func takePart(_ rest: inout Substring, of whole: String) throws(InvalidSetting) {
    func refuse(_ reason: String) -> InvalidSetting {
      InvalidSetting("\(InvalidSetting.quoted(whole)): \(reason)", suggestion: withoutBlanks(whole))
    }
    let type = rest.prefix { $0 != "=" }
    guard type.count < rest.count, type.first?.isLetter == true || type.first?.isNumber == true,
      type.utf8.allSatisfy({ byte in isNameByte(byte) })
    else { throw refuse("each part of a subject is TYPE=VALUE, with a comma and no blank between two") }
    rest = rest.dropFirst(type.count + 1)
    guard rest.first != " " else { throw refuse("a value begins behind the =, without a blank") }
    var last: Character?
    while let character = rest.popFirst() {
      switch character {
      case "\\":
        guard let escaped = rest.popFirst() else { throw refuse("nothing follows the last backslash") }
        last = escaped == " " ? nil : escaped
      case ",", "+":
        guard last != " " else { throw refuse("a blank stands before a separator") }
        guard !rest.isEmpty else { throw refuse("nothing follows the last separator") }
        return
      case "\"", "<", ">", ";": throw refuse("\(character) is written with a backslash before it")
      default: last = character
      }
    }
    guard last != " " else { throw refuse("a blank at the end of a value is written with a backslash before it") }
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// The subject without blanks around its separators, which other tools write; `nil` if it has none.
  private static func withoutBlanks(_ text: String) -> String? {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { part in
      part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { $0.trimmingPrefix { $0 == " " } }
        .map { String($0.reversed().drop { $0 == " " }.reversed()) }.joined(separator: "=")
    }
    let meant = parts.joined(separator: ",")
    return meant == text || !parts.allSatisfy({ $0.contains("=") }) ? nil : meant
  }
}

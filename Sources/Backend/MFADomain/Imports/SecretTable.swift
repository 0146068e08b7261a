internal import ByteCoding
internal import Foundation
internal import OneTimePasswords

/// Tables of secrets, as other servers export them: CSV (RFC 4180) with a line of column names, or a JSON list of
/// objects.
///
/// | column | values |
/// |---|---|
/// | `secret` | the secret, as `Encoding` says |
/// | `serial` | a number unique among all tokens; the user's name if there is no such column |
/// | `user` | the account that gets it; empty for none |
/// | `type` | `totp` (default) or `hotp` |
/// | `algorithm` | `SHA1` (default), `SHA256` or `SHA512` |
/// | `digits` | 6 (default) to 8 |
/// | `period` | seconds of a step, 15 to 300; 30 by default |
/// | `counter` | the next counter of HOTP; 0 by default |
/// | `manufacturer` | a text for display |
public enum SecretTable {
  /// How secrets are written.
  public enum Encoding: String, Sendable, Hashable, CaseIterable {
    /// Base32, as in links of authenticator apps, with spaces or dashes or without.
    case base32
    case hex
    /// Any form of base64 that `Base64.decode(anyForm:)` accepts.
    case base64
  }

  /// The largest file, in bytes.
  public static let largest = 16 << 20
  /// The longest value, in bytes.
  private static let longestValue = 1024
  /// The longest name of a column that is looked up, in bytes: a comparison takes time with the square of the number of
  /// combining marks.
  private static let longestName = 256
  static let columns = ["secret", "serial", "user", "type", "algorithm", "digits", "period", "counter", "manufacturer"]

  /// Reads a CSV file.
  ///
  /// - Throws: `ImportError`
  public static func read(csv bytes: [UInt8], encoding: Encoding) throws(ImportError) -> [ImportedToken] {
    guard bytes.count <= largest else { throw .file("the file is larger than \(largest) bytes") }
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    var reader = CSVReader(bytes: Array(bytes.starts(with: mark) ? bytes.dropFirst(3) : bytes[...]))
    guard let header = try reader.row() else { throw .file("the file is empty") }
    let names = header.values.map { $0.lowercased() }
    try check(names)
    var rows: [(place: String, values: [String: String])] = []
    while let row = try reader.row() {
      guard row.values.count == names.count else {
        throw .file("line \(row.line): \(row.values.count) values instead of \(names.count)")
      }
      try checkNumber(rows.count)
      rows.append(("line \(row.line)", Dictionary(zip(names, row.values), uniquingKeysWith: { first, _ in first })))
    }
    return try tokens(rows, encoding)
  }

  /// Reads a JSON file: a list of objects, whose values are texts or whole numbers.
  ///
  /// - Throws: `ImportError`
  public static func read(json bytes: [UInt8], encoding: Encoding) throws(ImportError) -> [ImportedToken] {
    guard bytes.count <= largest else { throw .file("the file is larger than \(largest) bytes") }
    guard JSONGrammar.accepts(bytes, within: .init(members: 64, values: 1_000_000)),
      let list = try? JSONDecoder().decode([[String: JSONCell]].self, from: Data(bytes))
    else { throw .file("the file is not a JSON list of objects with texts and whole numbers") }
    var rows: [(place: String, values: [String: String])] = []
    for (index, object) in list.enumerated() {
      try checkNumber(rows.count)
      if index == 0 { try check(object.keys.sorted()) }
      for name in object.keys where !columns.contains(name) { try check([name, "secret", "serial"]) }
      rows.append(("element \(index + 1)", object.mapValues(\.text)))
    }
    return try tokens(rows, encoding)
  }

  private static func checkNumber(_ count: Int) throws(ImportError) {
    guard count < Administration.mostImported else {
      throw .file("more than \(Administration.mostImported) tokens: split the file")
    }
  }

  private static func check(_ names: [String]) throws(ImportError) {
    for name in names where name.utf8.count > longestName || !columns.contains(name) {
      let near = Suggestions.nearest(to: name, in: columns).map { " (did you mean \($0))" } ?? ""
      throw .file(
        "the column \(String(name.unicodeScalars.prefix(40))) is unknown\(near): use \(columns.joined(separator: ", "))"
      )
    }
    guard Set(names).count == names.count else { throw .file("a column is there twice") }
    guard names.contains("secret") else { throw .file("the column secret is missing") }
    guard names.contains("serial") || names.contains("user") else {
      throw .file("neither the column serial nor the column user is there")
    }
  }

  private static func tokens(
    _ rows: [(place: String, values: [String: String])], _ encoding: Encoding
  ) throws(ImportError) -> [ImportedToken] {
    guard !rows.isEmpty else { throw .file("the file has no token") }
    var faults = TokenFaults()
    var tokens: [ImportedToken] = []
    for (place, values) in rows {
      do {
        tokens.append(try token(values.compactMapValues { $0.isEmpty ? nil : $0 }, place, encoding))
      } catch let fault as TokenFault {
        faults.add(place, fault.reason)
      } catch let invalid as InvalidValue {
        faults.add(place, "\(invalid.field) \(invalid.rule)")
      } catch {
        faults.add(place, "\(error)")
      }
    }
    try faults.check()
    return tokens
  }

  private static func token(
    _ values: [String: String], _ place: String, _ encoding: Encoding
  ) throws -> ImportedToken {
    for (name, value) in values where value.utf8.count > longestValue {
      throw TokenFault("\(name) is longer than \(longestValue) bytes")
    }
    guard let secret = values["secret"] else { throw TokenFault("secret is empty") }
    // No part of a secret is shown.
    guard let bytes = decode(secret, encoding) else { throw TokenFault("secret is not \(encoding.rawValue)") }
    guard let serial = values["serial"] ?? values["user"] else { throw TokenFault("serial and user are empty") }
    guard let kind = OATHToken.Kind(rawValue: values["type"]?.lowercased() ?? "totp") else {
      throw TokenFault("type is not totp or hotp")
    }
    guard let algorithm = TOTPAlgorithm(name: values["algorithm"] ?? "SHA1") else {
      throw TokenFault("algorithm is not SHA1, SHA256 or SHA512")
    }
    func number(_ name: String, _ standard: Int64) throws -> Int64 {
      try values[name].map { try PSKCFile.number($0, name) } ?? standard
    }
    let counter = try number("counter", 0)
    guard kind == .hotp || counter == 0 else { throw TokenFault("counter is for hotp only") }
    return try ImportedToken(
      place: place, serial: serial, maker: values["manufacturer"] ?? "", kind: kind, secret: bytes,
      algorithm: algorithm, digits: Int(clamping: try number("digits", 6)),
      period: Int(clamping: try number("period", 30)), counter: counter,
      username: try values["user"].map { try Username($0) })
  }

  private static func decode(_ text: String, _ encoding: Encoding) -> [UInt8]? {
    switch encoding {
    case .base32: try? Base32.decodeSecret(text)
    case .hex: Hex.decode(text)
    case .base64: Base64.decode(anyForm: text)
    }
  }
}

/// A value of a JSON table.
private enum JSONCell: Decodable {
  case word(String)
  case number(Int64)

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Int64.self) {
      self = .number(number)
    } else if container.decodeNil() {
      self = .word("")
    } else {
      self = .word(try container.decode(String.self))
    }
  }

  var text: String {
    switch self {
    case .word(let text): text
    case .number(let number): String(number)
    }
  }
}

/// Reads the rows of a CSV file (RFC 4180): commas, quotation marks, LF or CR LF.
struct CSVReader {
  private let bytes: [UInt8]
  private var index = 0
  private var line = 1
  private static let mostValues = 64

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// The next row that is not empty, and the line at which it begins; `nil` at the end.
  ///
  /// - Throws: `.file` for a quotation mark in the wrong place, an unclosed one, and text that is not UTF-8.
  mutating func row() throws(ImportError) -> (line: Int, values: [String])? {
    while index < bytes.count {
      let start = line
      var values = [try value()]
      while index < bytes.count, bytes[index] == UInt8(ascii: ",") {
        index += 1
        guard values.count < Self.mostValues else { throw .file("line \(start): more than \(Self.mostValues) values") }
        values.append(try value())
      }
      try endLine()
      if values != [""] { return (start, values) }
    }
    return nil
  }

  private mutating func endLine() throws(ImportError) {
    guard index < bytes.count else { return }
    if bytes[index] == 0x0D { index += 1 }
    guard index < bytes.count, bytes[index] == 0x0A else {
      throw .file("line \(line): text after a quotation mark, or a line end that is neither LF nor CR LF")
    }
    index += 1
    line += 1
  }

  private mutating func value() throws(ImportError) -> String {
    guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else { return try plainValue() }
    let start = line
    index += 1
    var text: [UInt8] = []
    while index < bytes.count {
      let byte = bytes[index]
      index += 1
      if byte == UInt8(ascii: "\"") {
        guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else { return try Self.text(text, start) }
        index += 1
      }
      if byte == 0x0A { line += 1 }
      text.append(byte)
    }
    throw .file("line \(start): a quotation mark is not closed")
  }

  private mutating func plainValue() throws(ImportError) -> String {
    let start = index
    while index < bytes.count, ![0x2C, 0x0A, 0x0D].contains(bytes[index]) {
      guard bytes[index] != UInt8(ascii: "\"") else {
        throw .file("line \(line): a quotation mark within a value that does not begin with one")
      }
      index += 1
    }
    return try Self.text(bytes[start..<index], line)
  }

  private static func text(_ bytes: some Collection<UInt8>, _ line: Int) throws(ImportError) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.utf8.elementsEqual(bytes) else { throw .file("line \(line): not UTF-8") }
    return text
  }
}

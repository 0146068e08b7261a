internal import AuthenticatorVault
internal import Foundation
internal import OneTimePasswords

/// Why one entry is of no use.
struct EntryFault: Error {
  let reason: String
  /// Whether its owner has thrown it away, so that nothing is wrong.
  let isDiscarded: Bool

  init(_ reason: String, isDiscarded: Bool = false) {
    self.reason = reason
    self.isDiscarded = isDiscarded
  }
}

/// The members of one entry as a file has them, before they are checked.
struct EntryFields {
  var type: String?
  var issuer: String?
  var account: String?
  /// The secret as text.
  var base32: String?
  /// The secret as bytes, instead of the text.
  var secret: [UInt8]?
  var algorithm: String?
  var digits: Int?
  var period: Int?
  var counter: Int64?
  var note: String?
  var tags: [String] = []
  /// What is kept of an entry of an unknown kind.
  var others: [String: JSONValue] = [:]

  /// The entry. A member that is absent or empty has its usual value; one that is impossible is an error, never
  /// replaced. A member that has no part in the codes of the entry is not looked at.
  func entry(at time: Int64) throws(EntryFault) -> VaultEntry {
    let name = Self.given(type)?.lowercased() ?? "totp"
    let secret = try secretBytes()
    let kind: VaultEntry.Kind
    switch name {
    case "totp": kind = .totp(period: try Self.checked(period ?? 30, "period", in: 1...300))
    case "hotp": kind = .hotp
    case "steam": kind = .steam
    default: kind = .other(name)
    }
    var hash = TOTPAlgorithm.sha1
    var length = 6
    switch kind {
    case .totp, .hotp:
      if let algorithm = Self.given(algorithm) {
        guard let found = TOTPAlgorithm(name: algorithm) else {
          // A longer text in this place may be a secret.
          throw EntryFault("the algorithm \(algorithm.utf8.count <= 12 ? algorithm : "is not known")")
        }
        hash = found
      }
      length = try Self.checked(digits ?? 6, "digits", in: 5...10)
    case .steam:
      length = 5
      try Self.checkSteam(digits: digits, period: period, algorithm: Self.given(algorithm))
    case .other: length = (5...10).contains(digits ?? 6) ? digits ?? 6 : 6
    }
    if let fault = EntryBounds.fault(issuer: issuer, account: account, note: note, tags: tags) {
      throw EntryFault(fault)
    }
    let counter = kind == .hotp ? counter ?? 0 : 0
    guard let number = UInt64(exactly: counter) else { throw EntryFault("counter=\(counter)") }
    return VaultEntry(
      issuer: (issuer ?? "").trimmingCharacters(in: .whitespacesAndNewlines),
      account: (account ?? "").trimmingCharacters(in: .whitespacesAndNewlines), secret: secret, kind: kind,
      algorithm: hash, digits: length, counter: number, note: note ?? "",
      tags: tags.filter { !$0.isEmpty }, at: time, otherFields: others)
  }

  /// Refuses Steam's codes with other parameters than Steam has. Aegis and FreeOTP+ keep those, and their codes are
  /// others than those of this program.
  static func checkSteam(digits: Int?, period: Int?, algorithm: String?) throws(EntryFault) {
    let named: String? =
      if let digits, digits != 5 {
        "digits=\(digits)"
      } else if let period, period != 30 {
        "period=\(period)"
      } else if let algorithm, TOTPAlgorithm(name: algorithm) != .sha1 {
        "algorithm=\(algorithm.utf8.count <= 12 ? algorithm : "…")"
      } else {
        nil
      }
    guard let named else { return }
    throw EntryFault("Steam's codes with \(named): only those of SHA1, five characters and 30 s are known")
  }

  /// The text of a member; `nil` for an empty one.
  private static func given(_ text: String?) -> String? { text.flatMap { $0.isEmpty ? nil : $0 } }

  private func secretBytes() throws(EntryFault) -> [UInt8] {
    var bytes = secret ?? []
    if let base32 {
      do throws(Base32Error) { bytes = try Base32.decodeSecret(base32) } catch {
        throw EntryFault("the secret is not valid: \(error)")
      }
    }
    guard !bytes.isEmpty else { throw EntryFault("there is no secret") }
    return bytes
  }

  private static func checked(_ value: Int, _ name: String, in range: ClosedRange<Int>) throws(EntryFault) -> Int {
    guard range.contains(value) else { throw EntryFault("\(name)=\(value) is not possible") }
    return value
  }
}

/// An element of a list that may be malformed without the others.
struct Lenient<Value: Decodable>: Decodable {
  let value: Result<Value, EntryFault>

  init(from decoder: any Decoder) throws {
    do {
      value = .success(try Value(from: decoder))
    } catch DecodingError.keyNotFound(let name, _) {
      value = .failure(EntryFault("\(name.stringValue) is missing"))
    } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
      let name = context.codingPath.last { $0.intValue == nil }?.stringValue ?? "the entry"
      value = .failure(EntryFault("\(name) is not what it should be"))
    } catch {
      value = .failure(EntryFault("the entry is malformed"))
    }
  }
}

extension ImportedFile {
  /// Adds each well-formed element of a list, and names the others.
  mutating func add<Value>(
    _ items: some Sequence<Lenient<Value>>, named name: (Value) -> String,
    _ read: (Value) throws(EntryFault) -> VaultEntry
  ) {
    add(items, named: { (try? $0.value.get()).map(name) ?? "" }) { item throws(EntryFault) in
      try read(item.value.get())
    }
  }
}

/// `issuer: account`, or the one that is there.
func shownName(_ issuer: String?, _ account: String?) -> String {
  [issuer ?? "", account ?? ""].filter { !$0.isEmpty }.joined(separator: ": ")
}

extension JSONDecoder {
  /// Decodes a whole file of at most `most` entries.
  ///
  /// - Throws: `.tooComplex` and `.tooLarge` before its values are made; `.malformed`, also for an object that has a
  ///   member twice: programs choose different ones of them.
  static func file<Value: Decodable>(
    _ type: Value.Type, _ data: Data, _ format: VaultFormat, most: Int
  ) throws(VaultFormatError) -> Value {
    let decoder = JSONDecoder()
    decoder.userInfo[.mostEntries] = most
    switch JSONBounds.fault(in: Array(data), mostValues: most * JSONBounds.valuesForEntry) {
    case .tooComplex: throw .tooComplex
    case .repeatedName: throw .malformed(format)
    case nil: break
    }
    do {
      return try decoder.decode(type, from: data)
    } catch VaultFormatError.tooLarge {
      throw .tooLarge
    } catch {
      throw .malformed(format)
    }
  }
}

extension CodingUserInfoKey {
  fileprivate static let mostEntries: CodingUserInfoKey = {
    guard let key = CodingUserInfoKey(rawValue: "mostEntries") else { preconditionFailure("every text is a key") }
    return key
  }()
}

extension Decoder {
  /// The most entries of the file that is being decoded.
  var mostEntries: Int { userInfo[.mostEntries] as? Int ?? VaultReader.mostEntries }
}

extension JSONEncoder {
  /// Encodes a whole file, with its members in a fixed order.
  static func file(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    do { return Array(try encoder.encode(value)) + [UInt8(ascii: "\n")] } catch {
      preconditionFailure("texts and integers are always JSON: \(error)")
    }
  }
}

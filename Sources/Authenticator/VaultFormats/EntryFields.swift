internal import AuthenticatorVault
internal import Foundation
internal import OneTimePasswords

/// Why one entry is of no use.
struct EntryFault: Error {
  let reason: String

  init(_ reason: String) { self.reason = reason }
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

  /// The entry. A member that is absent has its usual value; one that is impossible is an error, never replaced.
  func entry(at time: Int64) throws(EntryFault) -> VaultEntry {
    let name = (type ?? "totp").lowercased()
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
      if let algorithm {
        guard let found = TOTPAlgorithm(name: algorithm) else {
          // A longer text in this place may be a secret.
          throw EntryFault("the algorithm \(algorithm.utf8.count <= 12 ? algorithm : "is not known")")
        }
        hash = found
      }
      length = try Self.checked(digits ?? 6, "digits", in: 5...10)
    case .steam: length = 5
    case .other: length = (5...10).contains(digits ?? 6) ? digits ?? 6 : 6
    }
    guard let number = UInt64(exactly: counter ?? 0) else { throw EntryFault("counter=\(counter ?? 0)") }
    return VaultEntry(
      issuer: (issuer ?? "").trimmingCharacters(in: .whitespacesAndNewlines),
      account: (account ?? "").trimmingCharacters(in: .whitespacesAndNewlines), secret: secret, kind: kind,
      algorithm: hash, digits: length, counter: kind == .hotp ? number : 0, note: note ?? "",
      tags: tags.filter { !$0.isEmpty }, at: time, otherFields: others)
  }

  private func secretBytes() throws(EntryFault) -> [UInt8] {
    var bytes = secret ?? []
    if let base32 {
      do throws(Base32Error) { bytes = try Base32.decode(Base32.withoutSeparators(base32)) } catch {
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
    _ items: [Lenient<Value>], named name: (Value) -> String, _ read: (Value) throws(EntryFault) -> VaultEntry
  ) {
    add(items, named: { (try? $0.value.get()).map(name) ?? "" }) { item throws(EntryFault) in try read(item.value.get())
    }
  }
}

/// `issuer: account`, or the one that is there.
func shownName(_ issuer: String?, _ account: String?) -> String {
  [issuer ?? "", account ?? ""].filter { !$0.isEmpty }.joined(separator: ": ")
}

extension JSONDecoder {
  /// Decodes a whole file.
  static func file<Value: Decodable>(
    _ type: Value.Type, _ data: Data, _ format: VaultFormat
  ) throws(VaultFormatError) -> Value {
    do { return try JSONDecoder().decode(type, from: data) } catch { throw .malformed(format) }
  }
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

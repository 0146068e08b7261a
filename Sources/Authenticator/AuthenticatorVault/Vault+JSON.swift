public import Foundation

/// The JSON of a vault: `{"tokens":[{"issuer":…,"account":…,"secret":…,…}],"version":1}`.
enum VaultJSON {
  static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }()
}

extension Vault {
  /// The version of the format that this program writes.
  public static let version = 1

  /// The vault as JSON, with sorted members. Equal vaults have equal texts.
  public func json() -> Data {
    do {
      return try VaultJSON.encoder.encode(self)
    } catch {
      // Texts and integers alone: a number of another app that is not finite cannot have come from JSON.
      preconditionFailure("a vault is always JSON: \(error)")
    }
  }

  /// Reads a vault.
  ///
  /// - Throws: `.unknownVersion`, `.malformed`.
  public init(json: Data) throws(VaultError) {
    do {
      self = try JSONDecoder().decode(Vault.self, from: json)
    } catch let error as VaultError {
      throw error
    } catch DecodingError.keyNotFound(let name, _) {
      throw .malformed(name.stringValue)
    } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
      throw .malformed(context.codingPath.last { $0.intValue == nil }?.stringValue ?? "the JSON")
    } catch {
      throw .malformed("the JSON")
    }
  }
}

extension Vault: Codable {
  /// A removed entry, with its content as long as it can be restored.
  private struct Removal: Codable {
    let id: String
    let removed: Int64
    let token: VaultEntry?
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: MemberName.self)
    let version = try container.value(Int.self, "version")
    guard version == Self.version else { throw VaultError.unknownVersion(version) }
    for entry in try container.value([VaultEntry].self, "tokens") {
      guard records.updateValue(Record(entry: entry), forKey: entry.id) == nil else { throw VaultError.malformed("id") }
    }
    for removal in try container.optional([Removal].self, "removed") ?? [] {
      guard removal.token.map({ $0.id == removal.id }) ?? true else { throw VaultError.malformed("removed") }
      var record = records[removal.id] ?? Record()
      // An entry that was restored is among the tokens, and its removal has no content.
      record.entry = record.entry ?? removal.token
      record.removedAt = removal.removed
      records[removal.id] = record
    }
    otherFields = try container.others(than: ["tokens", "version", "removed"])
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: MemberName.self)
    try container.write(others: otherFields)
    try container.write(Self.version, "version")
    let sorted = records.sorted { $0.key < $1.key }
    try container.write(sorted.filter(\.value.isPresent).compactMap(\.value.entry), "tokens")
    let removals = sorted.compactMap { id, record in
      record.removedAt.map { Removal(id: id, removed: $0, token: record.isPresent ? nil : record.entry) }
    }
    if !removals.isEmpty { try container.write(removals, "removed") }
  }
}

internal import ByteCoding
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
  ///
  /// No value is nested deeper than `JSONValue.deepest`, which `init(json:)` checks, so that it can be written also
  /// with a removed entry around it.
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
  /// - Throws: `.unknownVersion`, `.malformed`, also for an object with two members of one name.
  public init(json: Data) throws(VaultError) {
    guard JSONOutline.hasNamesOnce(Array(json)) else { throw .malformed("the JSON") }
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
    /// The additions that it has seen; `nil` in a vault of an earlier version: then all until `removed`.
    let of: [Int64]?
    /// With `of`: all additions until then count as seen too.
    let until: Int64?
    let token: VaultEntry?
  }

  /// The additions of an entry that no removal has seen, if they are others than its creation.
  private struct Additions: Codable {
    let id: String
    let at: [Int64]
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: MemberName.self)
    let version = try container.value(Int.self, "version")
    guard version == Self.version else { throw VaultError.unknownVersion(version) }
    for entry in try container.value([VaultEntry].self, "tokens") {
      guard records.updateValue(Record(entry: entry), forKey: entry.id) == nil else { throw VaultError.malformed("id") }
    }
    for removal in try container.optional([Removal].self, "removed") ?? [] {
      guard removal.token.map({ $0.id == removal.id }) ?? true, VaultEntry.isIdentifier(removal.id) else {
        throw VaultError.malformed("removed")
      }
      // An entry that was restored is among the tokens, and its removal has no content.
      var record = records[removal.id] ?? Record(entry: removal.token)
      let time = VaultTime.orZero(removal.removed)
      record.removedAt = max(time, record.removedAt ?? 0)
      record.removedAdditions.formUnion((removal.of ?? []).map(VaultTime.read))
      if let until = removal.of == nil ? time : removal.until.map(VaultTime.orZero) {
        record.removedUntil = max(min(until, VaultTime.latestRead), record.removedUntil ?? 0)
      }
      record.dropSeenAdditions()
      records[removal.id] = record
    }
    for addition in try container.optional([Additions].self, "added") ?? [] {
      // An earlier version keeps this member and may have removed the entry.
      guard var record = records[addition.id], record.entry != nil else { continue }
      record.additions = Set(addition.at.map(VaultTime.read))
      record.dropSeenAdditions()
      records[addition.id] = record
    }
    otherFields = try container.others(than: Self.members)
  }

  private static let members: Set = ["tokens", "version", "removed", "added"]

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: MemberName.self)
    try container.write(others: otherFields)
    try container.write(Self.version, "version")
    let sorted = records.sorted { $0.key < $1.key }
    try container.write(sorted.filter(\.value.isPresent).compactMap(\.value.entry), "tokens")
    let removals = sorted.compactMap { id, record in
      record.removedAt.map { time in
        let isUnnamed = record.removedUntil == time && record.removedAdditions.isEmpty
        return Removal(
          id: id, removed: time, of: isUnnamed ? nil : record.removedAdditions.sorted(),
          until: isUnnamed ? nil : record.removedUntil, token: record.isPresent ? nil : record.entry)
      }
    }
    if !removals.isEmpty { try container.write(removals, "removed") }
    let additions = sorted.compactMap { id, record -> Additions? in
      var usual = record
      usual.additions = Record(entry: record.entry).additions
      usual.dropSeenAdditions()
      return usual.additions == record.additions ? nil : Additions(id: id, at: record.additions.sorted())
    }
    if !additions.isEmpty { try container.write(additions, "added") }
  }
}

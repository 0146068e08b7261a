internal import ByteCoding
internal import Crypto
public import Foundation

/// A vault in a file, together with the slots that hold its key.
///
/// Three lines of text:
/// 1. The header, a JSON object: `kind`, `version`, `keyID`, `slots`, `slotsChanged`.
/// 2. The vault's JSON, sealed with AES-256-GCM in the combined form, in base64. The first line without its line feed
///    is authenticated with it.
/// 3. The SHA-256 hash of both lines in hexadecimal digits. It tells damage from a wrong passphrase and proves nothing.
public struct VaultFile: Sendable, Hashable {
  /// The version of the format that this program writes.
  public static let version = 1
  /// The largest file that is read, in bytes: 64 MiB.
  public static let largest = 64 << 20
  /// The most slots of a file that is read. Each costs a wrong passphrase as much as the right one.
  public static let mostSlots = 8
  /// The sum of the costs of all slots of a file that is read: eight of those that `PassphraseSlot` makes, about four
  /// seconds.
  public static let largestCost = 8 * PassphraseSlot.cost
  /// The longest first line that is read, in bytes.
  private static let longestHeader = 16_384

  /// The slots, of which each opens with another passphrase.
  public struct Slots: Sendable, Hashable {
    /// At least one.
    public var slots: [PassphraseSlot]
    /// When they were last changed, in milliseconds since 1970.
    public var changedAt: Int64

    /// Creates the slots of a file.
    public init(_ slots: [PassphraseSlot], changedAt: Int64) {
      self.slots = slots
      self.changedAt = changedAt
    }

    /// Whether these slots count where another device has `other`: the later ones do. Of two changes of the same
    /// millisecond, all devices choose the same one, by the bytes of the slots in a file.
    public func supersede(_ other: Slots) -> Bool {
      guard changedAt == other.changedAt else { return changedAt > other.changedAt }
      return other.encoded.lexicographicallyPrecedes(encoded)
    }

    private var encoded: Data {
      do {
        return try VaultJSON.encoder.encode(slots)
      } catch {
        preconditionFailure("texts and integers are always JSON: \(error)")
      }
    }
  }

  private struct Header: Codable {
    let kind: String
    let version: Int
    let keyID: String
    let slots: [PassphraseSlot]
    let slotsChanged: Int64
  }

  /// Only what every version has.
  private struct AnyHeader: Decodable {
    let kind: String
    let version: Int
  }

  private static let kind = "sallyport-authenticator-vault"

  /// Names the key that the vault is sealed with.
  public let keyID: String
  /// The slots that hold the key.
  public let slots: Slots
  /// The whole file.
  public let bytes: Data
  private let header: Data
  private let sealed: Data
}

extension VaultFile {
  /// Seals `vault` with `key`.
  public init(_ vault: Vault, key: VaultKey, slots: Slots) {
    keyID = key.id
    self.slots = slots
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let fields = Header(
      kind: Self.kind, version: Self.version, keyID: key.id, slots: slots.slots, slotsChanged: slots.changedAt)
    do {
      header = try encoder.encode(fields)
    } catch {
      preconditionFailure("texts and integers are always JSON: \(error)")
    }
    sealed = CombinedBox.seal(vault.json(), header: header, with: key)
    let lines = header + Data("\n".utf8) + sealed.base64EncodedData() + Data("\n".utf8)
    bytes = lines + Self.checksum(lines)
  }

  /// Reads a file without opening the vault.
  ///
  /// - Throws: `.damaged` for everything that `init(_:key:slots:)` did not write; `.unknownVersion`, `.tooLarge`;
  ///   `.tooCostly` for slots that ask for more work than `largestCost`, before any of it is done.
  public init(bytes: Data) throws(VaultError) {
    guard bytes.count <= Self.largest else { throw .tooLarge }
    let bytes = Data(bytes)
    let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 3, omittingEmptySubsequences: false)
    guard let first = lines.first, first.count <= Self.longestHeader, JSONOutline.hasNamesOnce(Array(first)),
      let any = try? JSONDecoder().decode(AnyHeader.self, from: first), any.kind == Self.kind
    else { throw .damaged }
    guard any.version == Self.version else { throw .unknownVersion(any.version) }
    guard lines.count == 4, Self.checksum(bytes[..<lines[2].startIndex]) == bytes[lines[2].startIndex...] else {
      throw .damaged
    }
    let fields = try Self.header(first)
    guard !fields.slots.isEmpty, let sealed = Data(base64Encoded: lines[1]) else { throw .damaged }
    guard fields.slots.count <= Self.mostSlots, fields.slots.reduce(0, { $0 + $1.cost }) <= Self.largestCost else {
      throw .tooCostly
    }
    keyID = fields.keyID
    slots = Slots(fields.slots, changedAt: VaultTime.orZero(fields.slotsChanged))
    header = first
    self.sealed = sealed
    self.bytes = bytes
  }

  private static func header(_ line: Data) throws(VaultError) -> Header {
    do {
      return try JSONDecoder().decode(Header.self, from: line)
    } catch VaultError.tooCostly {
      throw .tooCostly
    } catch {
      throw .damaged
    }
  }

  /// The key, from the slot that `passphrase` opens. Takes as long as deriving a key for each slot does.
  ///
  /// - Throws: `.wrongPassphrase`; `.notAuthentic` if a slot holds another key than the header says; `.memory` if there
  ///   is too little to try a slot, and no other one opens.
  public func key(passphrase: String) throws(VaultError) -> VaultKey {
    var reason = VaultError.wrongPassphrase
    for slot in slots.slots {
      let key: VaultKey
      do throws(VaultError) { key = try slot.key(passphrase: passphrase) } catch {
        // What the passphrase would have opened is not known.
        if error != .wrongPassphrase { reason = error }
        continue
      }
      guard key.id == keyID else { throw .notAuthentic }
      return key
    }
    throw reason
  }

  /// Opens the vault.
  ///
  /// - Throws: `.otherKey` if it was sealed with another key; `.notAuthentic` if header or vault were changed;
  ///   `.unknownVersion` and `.malformed`, as `Vault.init(json:)` does.
  public func vault(key: VaultKey) throws(VaultError) -> Vault {
    guard key.id == keyID else { throw .otherKey }
    return try Vault(json: CombinedBox.open(sealed, header: header, with: key))
  }

  /// The values in the file that are not possible and were read as others: where each stands, and what it is.
  ///
  /// - Throws: As `vault(key:)` does.
  public func impossibleValues(key: VaultKey) throws(VaultError) -> [String] {
    guard key.id == keyID else { throw .otherKey }
    let plain = try CombinedBox.open(sealed, header: header, with: key)
    var times: [(place: String, time: Int64)] = []
    if let fields = try? JSONDecoder().decode(Header.self, from: header) {
      times.append(("slotsChanged", fields.slotsChanged))
    }
    let contents: Times
    do { contents = try JSONDecoder().decode(Times.self, from: plain) } catch { throw .malformed("the JSON") }
    for token in contents.tokens {
      times += token.times(in: "the entry \(token.issuer ?? "") \(token.account ?? "")")
    }
    for removal in contents.removed ?? [] {
      times.append(("removed", removal.removed))
      times += removal.token?.times(in: "a removed entry") ?? []
    }
    return times.filter { !VaultTime.isPossible($0.time) }.map { "\($0.place): the time \($0.time) is not possible" }
  }

  /// The times of a vault as they are written.
  private struct Times: Decodable {
    struct Token: Decodable {
      let issuer: String?
      let account: String?
      let created: Int64
      let updated: Int64?

      func times(in place: String) -> [(place: String, time: Int64)] {
        [("\(place), created", created)] + (updated.map { [("\(place), updated", $0)] } ?? [])
      }
    }

    struct Removal: Decodable {
      let removed: Int64
      let token: Token?
    }

    let tokens: [Token]
    let removed: [Removal]?
  }

  private static func checksum(_ lines: Data) -> Data {
    let digits = Array("0123456789abcdef".utf8)
    return Data(
      SHA256.hash(data: lines).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] } + [UInt8(ascii: "\n")])
  }
}

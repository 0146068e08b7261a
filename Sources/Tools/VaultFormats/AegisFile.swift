internal import AuthenticatorVault
internal import ByteCoding
internal import Crypto
internal import Foundation
internal import OneTimePasswords

/// The vault of Aegis (its document vault.md): `header`, and `db` plain or encrypted.
enum AegisFile {
  private struct Parameters: Codable {
    let nonce: String
    let tag: String
  }

  private struct Slot: Codable {
    let type: Int
    let uuid: String?
    let key: String
    let key_params: Parameters
    let n: Int?
    let r: Int?
    let p: Int?
    let salt: String?
  }

  private struct Header: Codable {
    var slots: [Slot]?
    var params: Parameters?

    /// Aegis expects both members, also where they are null.
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(slots, forKey: .slots)
      try container.encode(params, forKey: .params)
    }
  }

  private struct Envelope<Content: Codable>: Codable {
    var version = 1
    let header: Header
    let db: Content
  }

  private struct AnyEnvelope: Decodable { let header: Header }

  private struct Contents<Entries: Decodable>: Decodable {
    let version: Int
    let entries: Entries
    let groups: [Group]?
  }

  private struct WrittenContents: Codable {
    var version = 3
    let entries: [WrittenEntry]
    let groups: [Group]
  }

  private struct Group: Codable {
    let uuid: String
    let name: String
  }

  /// What is read of an entry.
  private struct Entry: Decodable {
    let type: String
    let name: String?
    let issuer: String?
    let note: String?
    /// Until version 2.
    let group: String?
    let groups: [String]?
    let info: [String: JSONValue]
    let favorite: LooseValue?
    let icon: LooseValue?
    let icon_mime: LooseValue?
    let icon_hash: LooseValue?
  }

  private struct WrittenEntry: Codable {
    let type: String
    let uuid: String
    let name: String
    let issuer: String
    let note: String
    let favorite: Bool
    let icon: JSONValue?
    let icon_mime: JSONValue?
    let icon_hash: JSONValue?
    let groups: [String]
    let info: [String: JSONValue]
  }

  /// The most slots of passwords that a file may have.
  private static let mostSlots = 8

  /// Where members of an unknown kind are kept in an entry of the vault.
  private static let keptMember = "aegis"

  static func read(_ data: Data, at time: Int64, most: Int, password: () throws -> String) throws -> ImportedFile {
    let header = try JSONDecoder.file(AnyEnvelope.self, data, .aegis, most: most).header
    let contents: Contents<EntryList<Entry>>
    if let slots = header.slots {
      let envelope = try JSONDecoder.file(Envelope<String>.self, data, .aegis, most: most)
      guard let box = Data(base64Encoded: envelope.db), let params = header.params else {
        throw VaultFormatError.malformed(.aegis)
      }
      let key = try masterKey(slots, try password())
      guard let nonce = Hex.decode(params.nonce), let tag = Hex.decode(params.tag),
        let plain = FileCipher.open(nonce: Data(nonce), ciphertext: box, tag: Data(tag), with: key)
      else { throw VaultFormatError.notAuthentic }
      contents = try JSONDecoder.file(Contents<EntryList<Entry>>.self, plain, .aegis, most: most)
    } else {
      struct Plain: Decodable { let db: Contents<EntryList<Entry>> }
      contents = try JSONDecoder.file(Plain.self, data, .aegis, most: most).db
    }
    guard (1...3).contains(contents.version) else {
      throw VaultFormatError.unsupported(
        "the vault has version \(contents.version) of Aegis, which is not known", hint: "export it as plain text")
    }
    let groups = Dictionary((contents.groups ?? []).map { ($0.uuid, $0.name) }) { first, _ in first }
    var file = ImportedFile(.aegis)
    var looks = EntryLook.Keeper(.aegis)
    var position: Int64 = 0
    file.add(contents.entries.items, named: { shownName($0.issuer, $0.name) }) { entry throws(EntryFault) in
      var read = try fields(entry, groups: groups).entry(at: time)
      read.otherFields.merge(look(of: entry, at: position, &looks)) { first, _ in first }
      position += 1
      return read
    }
    file.notes = looks.notes
    return file
  }

  private static func masterKey(_ slots: [Slot], _ password: String) throws(VaultFormatError) -> SymmetricKey {
    // Other types are those of fingerprint readers, whose key stays on its phone.
    let slots = slots.filter { $0.type == 1 }
    // Each costs as much time as its file asks for.
    guard slots.count <= mostSlots else {
      throw .keyDerivation("\(slots.count) password slots instead of 1 to \(mostSlots)")
    }
    let work = slots.reduce(0.0) { $0 + FileCipher.work(n: $1.n ?? 0, r: $1.r ?? 0, p: $1.p ?? 0) }
    // That of one alone is told with its numbers.
    guard slots.count <= 1 || work <= FileCipher.mostWork else {
      throw .keyDerivation("\(slots.count) password slots of scrypt, which take too long together")
    }
    for slot in slots {
      guard let salt = slot.salt.flatMap({ Hex.decode($0) }), let n = slot.n, let r = slot.r, let p = slot.p,
        let wrapped = Hex.decode(slot.key), let nonce = Hex.decode(slot.key_params.nonce),
        let tag = Hex.decode(slot.key_params.tag)
      else { throw .malformed(.aegis) }
      let derived = try FileCipher.scrypt(password, salt: Data(salt), n: n, r: r, p: p)
      if let key = FileCipher.open(nonce: Data(nonce), ciphertext: Data(wrapped), tag: Data(tag), with: derived),
        key.count == 32
      {
        return SymmetricKey(data: key)
      }
    }
    throw .wrongPassword
  }

  private static func fields(_ entry: Entry, groups: [String: String]) throws(EntryFault) -> EntryFields {
    var fields = EntryFields()
    fields.type = entry.type
    fields.issuer = entry.issuer
    fields.account = entry.name
    fields.note = entry.note
    fields.tags = (entry.groups ?? []).compactMap { groups[$0] } + (entry.group.map { [$0] } ?? [])
    var info = entry.info
    guard case .string(let secret)? = info.removeValue(forKey: "secret") else { throw EntryFault("there is no secret") }
    fields.base32 = secret
    guard ["totp", "hotp", "steam"].contains(entry.type.lowercased()) else {
      fields.others = [keptMember: .object(info)]
      return fields
    }
    fields.algorithm = try text(info["algo"], "algo")
    // A fault of an earlier Aegis let people choose the algorithm of another kind, and computed with SHA-1.
    if fields.algorithm == "MD5" { fields.algorithm = "SHA1" }
    fields.digits = try number(info["digits"], "digits").flatMap { Int(exactly: $0) }
    fields.period = try number(info["period"], "period").flatMap { Int(exactly: $0) }
    fields.counter = try number(info["counter"], "counter")
    return fields
  }

  /// What is kept of how Aegis shows an entry: icon, kind and hash of the icon, whether it is a favorite.
  private static func look(
    of entry: Entry, at position: Int64, _ looks: inout EntryLook.Keeper
  ) -> [String: JSONValue] {
    let icon = [
      "icon": entry.icon?.text, "icon_mime": entry.icon_mime?.text, "icon_hash": entry.icon_hash?.text,
    ]
    return looks.kept(
      ["favorite": entry.favorite?.value == .bool(true) ? .bool(true) : nil],
      icon: entry.icon?.text == nil ? [:] : icon, at: position, of: shownName(entry.issuer, entry.name))
  }

  private static func text(_ value: JSONValue?, _ name: String) throws(EntryFault) -> String? {
    switch value {
    case nil, .null: return nil
    case .string(let text): return text
    default: throw EntryFault("\(name) is not a text")
    }
  }

  private static func number(_ value: JSONValue?, _ name: String) throws(EntryFault) -> Int64? {
    switch value {
    case nil, .null: return nil
    case .integer(let number): return number
    default: throw EntryFault("\(name) is not a whole number")
    }
  }

  // MARK: Writing

  static func write(_ entries: [VaultEntry], password: String?) throws(VaultFormatError) -> VaultWriter.Written {
    let names = Set(entries.flatMap(\.tags)).sorted()
    let groups = names.map { Group(uuid: UUID().uuidString.lowercased(), name: $0) }
    let uuids = Dictionary(uniqueKeysWithValues: groups.map { ($0.name, $0.uuid) })
    var items: [WrittenEntry] = []
    var faults: [ImportFault] = []
    for entry in entries {
      let item = written(entry, groups: uuids)
      if isRead(item, as: entry) {
        items.append(item)
      } else {
        faults.append(ImportFault(place: entry.name, reason: "its texts or values are longer than a file may have"))
      }
    }
    let bytes = try file(WrittenContents(entries: items, groups: groups), password: password)
    return .init(bytes: bytes, faults: faults)
  }

  /// Whether `item` is read as an entry with the codes of `entry`.
  private static func isRead(_ item: WrittenEntry, as entry: VaultEntry) -> Bool {
    // Two objects and a list stand around it. Each of its groups has three values of its own in the file.
    let bytes = JSONEncoder.file(item)
    let most = JSONBounds.valuesForEntry - 4 * item.groups.count
    guard JSONBounds.fault(in: bytes, mostValues: most, levels: 3) == nil,
      let again = try? JSONDecoder().decode(Entry.self, from: Data(bytes))
    else { return false }
    return (try? fields(again, groups: [:]).entry(at: 0))?.id == entry.codesID
  }

  private static func file(_ contents: WrittenContents, password: String?) throws(VaultFormatError) -> [UInt8] {
    guard let password else {
      return JSONEncoder.file(Envelope(header: Header(slots: nil, params: nil), db: contents))
    }
    let key = SymmetricKey(size: .bits256)
    let salt = FileCipher.random(32)
    let (n, r, p) = (32_768, 8, 1)
    let derived = try FileCipher.scrypt(password, salt: salt, n: n, r: r, p: p)
    let wrapped = FileCipher.seal(key.withUnsafeBytes { Data($0) }, with: derived)
    let sealed = FileCipher.seal(Data(JSONEncoder.file(contents)), with: key)
    let slot = Slot(
      type: 1, uuid: UUID().uuidString.lowercased(), key: Hex.encode(wrapped.ciphertext),
      key_params: Parameters(nonce: Hex.encode(Data(wrapped.nonce)), tag: Hex.encode(wrapped.tag)), n: n, r: r, p: p,
      salt: Hex.encode(salt))
    let params = Parameters(nonce: Hex.encode(Data(sealed.nonce)), tag: Hex.encode(sealed.tag))
    return JSONEncoder.file(
      Envelope(header: Header(slots: [slot], params: params), db: sealed.ciphertext.base64EncodedString()))
  }

  private static func written(_ entry: VaultEntry, groups: [String: String]) -> WrittenEntry {
    var info: [String: JSONValue] = ["secret": .string(Base32.encode(entry.secret))]
    let type: String
    switch entry.kind {
    case .totp(let period):
      type = "totp"
      info["period"] = .integer(Int64(period))
    case .hotp:
      type = "hotp"
      info["counter"] = .integer(Int64(clamping: entry.counter))
    case .steam:
      type = "steam"
      info["period"] = .integer(30)
    case .other(let name):
      type = name
      if case .object(let kept)? = entry.otherFields[keptMember] { info.merge(kept) { first, _ in first } }
    }
    // Steam's codes have no others, whatever the entry says.
    let isSteam = entry.kind == .steam
    let look = EntryLook.of(entry, .aegis)
    info["algo"] = info["algo"] ?? .string((isSteam ? .sha1 : entry.algorithm).rawValue)
    info["digits"] = info["digits"] ?? .integer(isSteam ? 5 : Int64(entry.digits))
    return WrittenEntry(
      type: type, uuid: entry.id, name: entry.account, issuer: entry.issuer, note: entry.note,
      favorite: look["favorite"] == .bool(true), icon: look["icon"], icon_mime: look["icon_mime"],
      icon_hash: look["icon_hash"], groups: entry.tags.compactMap { groups[$0] }, info: info)
  }
}

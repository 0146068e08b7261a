internal import AuthenticatorVault
internal import Crypto
internal import Foundation
internal import OneTimePasswords

/// The backup of 2FAS, schemas 1 to 4: `services`, or encrypted in `servicesEncrypted`.
enum TwoFASFile {
  private struct Backup: Decodable {
    let services: EntryList<Service>?
    let groups: [Group]?
    let schemaVersion: Int?
    let servicesEncrypted: String?
  }

  private struct Group: Decodable {
    let id: String
    let name: String
  }

  private struct WrittenGroup: Encodable {
    let id: String
    let name: String
    let isExpanded = true
    let updatedAt: Int64
  }

  /// What is read of a service.
  private struct Service: Decodable {
    let name: String?
    let secret: String
    let otp: Details?
    let groupId: String?
    let order: LooseValue?
    let icon: LooseValue?
    let badge: LooseValue?
    let serviceTypeID: LooseValue?

    /// What 2FAS shows and lets its owner edit; without it, what the service wrote into its link.
    var shownIssuer: String? {
      let isEmpty = (name ?? "").allSatisfy(\.isWhitespace)
      return isEmpty ? otp?.issuer : name
    }
  }

  private struct WrittenService: Encodable {
    let name: String
    let secret: String
    let updatedAt: Int64
    let otp: Details
    let order: Order
    let icon: JSONValue
    let badge: JSONValue?
    let serviceTypeID: JSONValue?
    let groupId: String?
  }

  private struct Details: Codable {
    var label: String?
    var account: String?
    var issuer: String?
    var digits: Int?
    var period: Int?
    var algorithm: String?
    var counter: Int64?
    var tokenType: String?
    /// Written only.
    var source: String?

    init() {}

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      label = try container.decodeIfPresent(String.self, forKey: .label)
      account = try container.decodeIfPresent(String.self, forKey: .account)
      issuer = try container.decodeIfPresent(String.self, forKey: .issuer)
      digits = try container.decodeIfPresent(Int.self, forKey: .digits)
      period = try container.decodeIfPresent(Int.self, forKey: .period)
      algorithm = try container.decodeIfPresent(String.self, forKey: .algorithm)
      counter = try container.decodeIfPresent(Int64.self, forKey: .counter)
      tokenType = try container.decodeIfPresent(String.self, forKey: .tokenType)
    }
  }

  private struct Order: Encodable { let position: Int }

  private struct WrittenBackup: Encodable {
    let services: [WrittenService]
    let groups: [WrittenGroup]
    let updatedAt: Int64
    let schemaVersion = 4
    let appVersionCode = 5_000_000
    let appVersionName = "5.0.0"
    let appOrigin = "android"
    var reference: String?
    var servicesEncrypted: String?
  }

  private static let rounds = 10_000
  /// What `reference` encrypts in every backup, so that 2FAS recognizes a wrong password.
  private static let reference =
    "tRViSsLKzd86Hprh4ceC2OP7xazn4rrt4xhfEUbOjxLX8Rc3mkISXE0lWbmnWfggogbBJhtYgpK6fMl1D6mtsy92R3HkdGfwuXbzLebqVFJsR7IZ2"
    + "w58t938iymwG4824igYyy1wi6n2WDpO1Q1P69zwJGs2F5a1qP4MyIiDSD7NCV2OvidXQCBnDlGfmz0f1BQySRkkt4ryiJeCjD2o4QsveJ9uDBUn8"
    + "ELyOrESv5R5DMDkD4iAF8TXU7KyoJujd"

  static func read(_ data: Data, at time: Int64, most: Int, password: () throws -> String) throws -> ImportedFile {
    let backup = try JSONDecoder.file(Backup.self, data, .twoFAS, most: most)
    if let version = backup.schemaVersion, !(1...4).contains(version) {
      throw VaultFormatError.unsupported(
        "the backup has schema \(version) of 2FAS, which is not known", hint: "schemas 1 to 4 are read")
    }
    var services = backup.services?.items ?? []
    if let encrypted = backup.servicesEncrypted, !encrypted.isEmpty {
      services = try JSONDecoder.file(
        EntryList<Service>.self, try decrypt(encrypted, try password()), .twoFAS, most: most
      ).items
    }
    let groups = Dictionary((backup.groups ?? []).map { ($0.id, $0.name) }) { first, _ in first }
    var file = ImportedFile(.twoFAS)
    var looks = EntryLook.Keeper(.twoFAS)
    file.add(services, named: { shownName($0.shownIssuer, $0.otp?.account) }) { service throws(EntryFault) in
      var entry = try fields(service, groups: groups).entry(at: time)
      entry.otherFields.merge(look(of: service, &looks)) { first, _ in first }
      return entry
    }
    file.notes = looks.notes
    return file
  }

  /// What is kept of how 2FAS shows a service: its place, icon, badge and the service that its icon is of.
  private static func look(of service: Service, _ looks: inout EntryLook.Keeper) -> [String: JSONValue] {
    var position = Int64.max
    if case .object(let order)? = service.order?.value, case .integer(let number)? = order["position"] {
      position = number
    }
    return looks.kept(
      ["badge": service.badge?.object, "serviceTypeID": service.serviceTypeID?.text],
      icon: ["icon": service.icon?.object], at: position, of: shownName(service.shownIssuer, service.otp?.account))
  }

  /// The icon of a service that 2FAS has not shown yet: the first letters of its name.
  private static func icon(of entry: VaultEntry) -> JSONValue {
    let letters = String((entry.issuer.isEmpty ? entry.account : entry.issuer).prefix(2)).uppercased()
    return .object([
      "selected": .string("Label"),
      "label": .object(["text": .string(letters), "backgroundColor": .string("Default")]),
      "iconCollection": .object(["id": .string("a5b3fb65-4ec5-43e6-8ec1-49e24ca9e7ad")]),
    ])
  }

  private static func fields(_ service: Service, groups: [String: String]) -> EntryFields {
    var fields = EntryFields()
    fields.type = service.otp?.tokenType
    fields.issuer = service.shownIssuer
    fields.account = service.otp?.account ?? service.otp?.label
    fields.base32 = service.secret
    fields.algorithm = service.otp?.algorithm
    // Those of Steam always have five characters.
    fields.digits = fields.type?.lowercased() == "steam" ? nil : service.otp?.digits
    fields.period = service.otp?.period
    fields.counter = service.otp?.counter
    fields.tags = service.groupId.flatMap { groups[$0] }.map { [$0] } ?? []
    return fields
  }

  /// `ciphertext:salt:nonce` in base64; the tag ends the ciphertext.
  private static func decrypt(_ text: String, _ password: String) throws(VaultFormatError) -> Data {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Data(base64Encoded: String($0)) }
    guard parts.count == 3, let box = parts[0], let salt = parts[1], let nonce = parts[2], box.count >= 16 else {
      throw .malformed(.twoFAS)
    }
    let key = try FileCipher.pbkdf2(password, salt: salt, rounds: rounds)
    // One tag alone does not tell a wrong password from a change.
    guard let plain = FileCipher.open(nonce: nonce, ciphertext: box.dropLast(16), tag: box.suffix(16), with: key) else {
      throw .wrongPassword
    }
    return plain
  }

  private static func encrypt(_ plaintext: Data, salt: Data, _ key: SymmetricKey) -> String {
    let box = FileCipher.seal(plaintext, with: key)
    return [box.ciphertext + box.tag, salt, Data(box.nonce)].map { $0.base64EncodedString() }.joined(separator: ":")
  }

  static func write(
    _ entries: [VaultEntry], password: String?, at time: Int64
  ) throws(VaultFormatError) -> VaultWriter.Written {
    var services: [WrittenService] = []
    var faults: [ImportFault] = []
    let names = Set(entries.compactMap(\.tags.first)).sorted()
    let groups = names.map { WrittenGroup(id: UUID().uuidString.lowercased(), name: $0, updatedAt: time) }
    let ids = Dictionary(uniqueKeysWithValues: groups.map { ($0.name, $0.id) })
    for entry in entries {
      do throws(EntryFault) {
        try check(entry)
        let service = service(entry, position: services.count, groups: ids)
        guard isRead(service, as: entry) else { throw EntryFault("texts as long as these") }
        services.append(service)
      } catch {
        faults.append(ImportFault(place: entry.name, reason: "2fas has no place for \(error.reason)"))
      }
    }
    guard let password else {
      return .init(
        bytes: JSONEncoder.file(WrittenBackup(services: services, groups: groups, updatedAt: time)), faults: faults)
    }
    let salt = FileCipher.random(256)
    let key = try FileCipher.pbkdf2(password, salt: salt, rounds: rounds)
    let backup = WrittenBackup(
      services: [], groups: groups, updatedAt: time,
      reference: encrypt(Data(reference.utf8), salt: salt, key),
      servicesEncrypted: encrypt(Data(JSONEncoder.file(services)), salt: salt, key))
    return .init(bytes: JSONEncoder.file(backup), faults: faults)
  }

  /// The digits and the periods that 2FAS for iOS has. It computes codes with others of its own instead.
  private static let (digits, periods): (Set, Set) = ([6, 7, 8], [10, 30, 60, 90])

  private static func check(_ entry: VaultEntry) throws(EntryFault) {
    switch entry.kind {
    case .totp(let period):
      guard periods.contains(period) else {
        throw EntryFault("a period of \(period) s: 2FAS for iOS has 10, 30, 60, 90")
      }
    case .hotp: break
    case .steam: return
    case .other: throw EntryFault("codes of this kind")
    }
    guard digits.contains(entry.digits) else { throw EntryFault("\(entry.digits) digits: 2FAS for iOS has 6, 7, 8") }
  }

  /// Whether `service` is read as an entry with the codes of `entry`.
  private static func isRead(_ service: WrittenService, as entry: VaultEntry) -> Bool {
    // Its file has an object and a list around it.
    let bytes = JSONEncoder.file(service)
    guard JSONBounds.fault(in: bytes, mostValues: JSONBounds.valuesForEntry, levels: 2) == nil,
      let again = try? JSONDecoder().decode(Service.self, from: Data(bytes))
    else { return false }
    return (try? fields(again, groups: [:]).entry(at: 0))?.id == entry.codesID
  }

  private static func service(_ entry: VaultEntry, position: Int, groups: [String: String]) -> WrittenService {
    var details = Details()
    switch entry.kind {
    case .totp(let period):
      details.tokenType = "TOTP"
      details.period = period
    case .hotp:
      details.tokenType = "HOTP"
      details.counter = Int64(clamping: entry.counter)
    case .steam:
      details.tokenType = "STEAM"
      details.period = 30
    case .other: break
    }
    details.label = entry.issuer.isEmpty ? entry.account : "\(entry.issuer):\(entry.account)"
    details.account = entry.account
    details.issuer = entry.issuer
    // Steam's codes have no others, whatever the entry says.
    details.digits = entry.kind == .steam ? 5 : entry.digits
    details.algorithm = (entry.kind == .steam ? .sha1 : entry.algorithm).rawValue
    details.source = "Link"
    let look = EntryLook.of(entry, .twoFAS)
    return WrittenService(
      name: entry.issuer, secret: Base32.encode(entry.secret), updatedAt: entry.updatedAt, otp: details,
      order: Order(position: position), icon: look["icon"] ?? icon(of: entry), badge: look["badge"],
      serviceTypeID: look["serviceTypeID"], groupId: entry.tags.first.flatMap { groups[$0] })
  }
}

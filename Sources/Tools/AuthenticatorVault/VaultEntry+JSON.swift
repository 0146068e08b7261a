internal import OneTimePasswords

extension VaultEntry: Codable {
  private static let members: Set = [
    "id", "issuer", "account", "secret", "type", "algorithm", "digits", "period", "counter", "note", "tags", "created",
    "updated",
  ]

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: MemberName.self)
    let secretText = try container.value(String.self, "secret")
    guard let secret = try? Base32.decode(secretText), !secret.isEmpty else { throw VaultError.malformed("secret") }
    let algorithmName = try container.optional(String.self, "algorithm") ?? TOTPAlgorithm.sha1.rawValue
    guard let algorithm = TOTPAlgorithm(rawValue: algorithmName) else { throw VaultError.malformed("algorithm") }
    let digits = try container.optional(Int.self, "digits") ?? 6
    guard (5...10).contains(digits) else { throw VaultError.malformed("digits") }
    let period = try container.optional(Int.self, "period") ?? 30
    guard (1...300).contains(period) else { throw VaultError.malformed("period") }
    let kind: Kind =
      switch try container.optional(String.self, "type") ?? "totp" {
      case "totp": .totp(period: period)
      case "hotp": .hotp
      case "steam": .steam
      case let name: .other(name)
      }
    let id = try container.value(String.self, "id")
    guard Self.isIdentifier(id) else { throw VaultError.malformed("id") }
    let created = VaultTime.read(try container.value(Int64.self, "created"))
    self.init(
      id: id, issuer: try container.optional(String.self, "issuer") ?? "",
      account: try container.optional(String.self, "account") ?? "", secret: secret, kind: kind, algorithm: algorithm,
      digits: digits, counter: try container.optional(UInt64.self, "counter") ?? 0,
      note: try container.optional(String.self, "note") ?? "",
      tags: try container.optional([String].self, "tags") ?? [],
      createdAt: created, updatedAt: try container.optional(Int64.self, "updated").map(VaultTime.read) ?? created,
      otherFields: try container.others(than: Self.members))
  }

  /// Whether a text can identify an entry: 1 to 64 visible ASCII characters. Others could be equal to each other by
  /// canonical equivalence, and slow to compare.
  static func isIdentifier(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  /// Leaves out what has its usual value.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: MemberName.self)
    try container.write(others: otherFields)
    try container.write(id, "id")
    if !issuer.isEmpty { try container.write(issuer, "issuer") }
    if !account.isEmpty { try container.write(account, "account") }
    try container.write(Base32.encode(secret), "secret")
    switch kind {
    case .totp(let period): if period != 30 { try container.write(period, "period") }
    case .hotp: try container.write("hotp", "type")
    case .steam: try container.write("steam", "type")
    case .other(let name): try container.write(name, "type")
    }
    if algorithm != .sha1 { try container.write(algorithm.rawValue, "algorithm") }
    if digits != 6 { try container.write(digits, "digits") }
    if counter != 0 { try container.write(counter, "counter") }
    if !note.isEmpty { try container.write(note, "note") }
    if !tags.isEmpty { try container.write(tags, "tags") }
    try container.write(createdAt, "created")
    if updatedAt != createdAt { try container.write(updatedAt, "updated") }
  }
}

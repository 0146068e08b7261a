internal import AuthenticatorVault
internal import Foundation
internal import OneTimePasswords

/// andOTP's backup: a list, plain or encrypted with a password.
enum AndOTPFile {
  /// The shortest and the longest key derivation that is read, in rounds. andOTP takes 140,000 to 160,000.
  private static let rounds = 1_000...1_000_000

  /// Whether a file begins as an encrypted backup does, with a plausible number of rounds.
  static func isEncrypted(_ bytes: some Collection<UInt8>) -> Bool {
    // Rounds, salt, nonce, an empty list and a tag.
    bytes.count >= 4 + 12 + 12 + 2 + 16 && rounds.contains(count(of: bytes))
  }

  private static func count(of bytes: some Collection<UInt8>) -> Int {
    bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
  }

  /// Decrypts: the rounds of PBKDF2 with HMAC-SHA1 in four bytes, most significant first, 12 bytes of salt, 12 of nonce,
  /// the ciphertext of AES-256-GCM, and its tag.
  private static func decrypted(_ data: Data, _ password: String) throws(VaultFormatError) -> Data {
    let rounds = count(of: data)
    guard isEncrypted(data) else { throw .keyDerivation("PBKDF2 with \(rounds) rounds") }
    let rest = data.dropFirst(4)
    let key = try FileCipher.pbkdf2(password, salt: rest.prefix(12), rounds: rounds, hash: .sha1)
    let box = rest.dropFirst(24)
    guard
      let plain = FileCipher.open(
        nonce: Data(rest.dropFirst(12).prefix(12)), ciphertext: box.dropLast(16), tag: box.suffix(16), with: key)
    else { throw .wrongPassword }
    return plain
  }

  private struct Entry: Decodable {
    let secret: String
    let issuer: String?
    let label: String?
    let type: String?
    let algorithm: String?
    let digits: Int?
    let period: Int?
    let counter: Int64?
    let tags: [String]?
  }

  static func read(_ data: Data, at time: Int64, most: Int, password: () throws -> String) throws -> ImportedFile {
    let isPlain = data.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "[")
    let data = isPlain ? data : try decrypted(data, password())
    var file = ImportedFile(.andOTP)
    let entries = try JSONDecoder.file(EntryList<Entry>.self, data, .andOTP, most: most).items
    file.add(entries, named: { shownName($0.issuer, $0.label) }) { entry throws(EntryFault) in
      var fields = EntryFields()
      fields.type = entry.type
      fields.issuer = entry.issuer
      fields.account = entry.label
      fields.base32 = entry.secret
      fields.algorithm = entry.algorithm
      fields.digits = entry.digits
      fields.period = entry.period
      fields.counter = entry.counter
      fields.tags = entry.tags ?? []
      return try fields.entry(at: time)
    }
    return file
  }
}

/// OTPClient's list of entries, plain or in its encrypted database.
enum OTPClientFile {
  private struct Entry: Decodable {
    let type: String?
    let label: String?
    let issuer: String?
    let secret: String
    let digits: Int?
    let algo: String?
    let period: Int?
    let counter: Int64?
    let group: String?
  }

  static func read(_ data: Data, at time: Int64, most: Int, password: () throws -> String) throws -> ImportedFile {
    let data = OTPClientDatabase.begins(data) ? try OTPClientDatabase(data).open(password()) : data
    var file = ImportedFile(.otpClient)
    let entries = try JSONDecoder.file(EntryList<Entry>.self, data, .otpClient, most: most).items
    file.add(entries, named: { shownName($0.issuer, $0.label) }) { entry throws(EntryFault) in
      var fields = EntryFields()
      // Steam's codes are entries of TOTP with this issuer.
      fields.type = entry.issuer?.lowercased() == "steam" ? "steam" : entry.type
      fields.issuer = entry.issuer
      fields.account = entry.label
      fields.base32 = entry.secret
      fields.algorithm = entry.algo
      // Those of Steam always have five characters.
      fields.digits = fields.type == "steam" ? nil : entry.digits
      fields.period = entry.period
      fields.counter = entry.counter
      fields.tags = entry.group.map { [$0] } ?? []
      return try fields.entry(at: time)
    }
    return file
  }
}

/// FreeOTP+'s backup. Its secrets are lists of signed bytes.
enum FreeOTPFile {
  private struct Backup: Decodable { let tokens: EntryList<Token> }

  private struct Token: Decodable {
    let algo: String?
    let counter: Int64?
    let digits: Int?
    let issuerExt: String?
    let issuerInt: String?
    let issuerAlt: String?
    let label: String?
    let labelAlt: String?
    let period: Int?
    let secret: [Int]
    let type: String?
  }

  static func read(_ data: Data, at time: Int64, most: Int) throws(VaultFormatError) -> ImportedFile {
    var file = ImportedFile(.freeOTP)
    let backup = try JSONDecoder.file(Backup.self, data, .freeOTP, most: most)
    file.add(backup.tokens.items, named: { shownName($0.issuerExt, $0.label) }) { token throws(EntryFault) in
      var fields = EntryFields()
      // Codes of this issuer have Steam's alphabet.
      let isSteam = token.type?.lowercased() != "hotp" && [token.issuerExt, token.issuerInt].contains("Steam")
      fields.type = isSteam ? "steam" : token.type
      fields.issuer = token.issuerAlt ?? token.issuerExt
      fields.account = token.labelAlt ?? token.label
      guard token.secret.allSatisfy({ (-128...255).contains($0) }) else { throw EntryFault("the secret is not bytes") }
      fields.secret = token.secret.map { UInt8(truncatingIfNeeded: $0) }
      fields.algorithm = token.algo
      fields.digits = token.digits
      fields.period = token.period
      // FreeOTP+ shows the code of the counter that it keeps, and then counts up: that of the next code. It keeps the
      // counter of a link less one, so that a fresh entry has -1, for which no service has a code.
      fields.counter = token.counter == -1 ? 0 : token.counter
      return try fields.entry(at: time)
    }
    return file
  }
}

/// Bitwarden's export, plain or encrypted with a password. Of each item only the code is read, never its password.
enum BitwardenFile {
  private struct Export: Decodable {
    let encrypted: Bool?
    let passwordProtected: Bool?
    let items: EntryList<Item>?
    let folders: [Folder]?
    /// The groups of an organization, whose export has no folders.
    let collections: [Folder]?
  }

  private struct Folder: Decodable {
    let id: String?
    let name: String?
  }

  private struct Item: Decodable {
    let name: String?
    let folderId: String?
    let collectionIds: [String]?
    let login: Login?
  }

  private struct Login: Decodable {
    let username: String?
    let totp: String?
  }

  static func read(_ data: Data, at time: Int64, most: Int, password: () throws -> String) throws -> ImportedFile {
    var export = try JSONDecoder.file(Export.self, data, .bitwarden, most: most)
    if export.encrypted == true, export.passwordProtected == true {
      let parameters = try JSONDecoder.file(BitwardenCipher.Parameters.self, data, .bitwarden, most: most)
      let plain = try BitwardenCipher.decrypt(parameters, password: password)
      export = try JSONDecoder.file(Export.self, plain, .bitwarden, most: most)
    }
    guard export.encrypted != true, let items = export.items?.items else {
      throw VaultFormatError.unsupported(
        "the export of Bitwarden is encrypted for its account, which is not read",
        hint: "export it as .json, with a password of the file or without encryption")
    }
    let groups = (export.folders ?? []) + (export.collections ?? [])
    let names = Dictionary(groups.map { ($0.id ?? "", $0.name ?? "") }) { first, _ in first }
    var file = ImportedFile(.bitwarden)
    let withCode = items.filter { item in
      guard case .success(let item) = item.value else { return true }
      return !(item.login?.totp ?? "").isEmpty
    }
    file.add(withCode, named: { shownName($0.name, $0.login?.username) }) { item throws(EntryFault) in
      var entry = try SecretOrLink.entry(
        item.login?.totp ?? "", issuer: item.name, account: item.login?.username, at: time)
      let ids = (item.folderId.map { [$0] } ?? []) + (item.collectionIds ?? [])
      entry.tags = Set(ids.compactMap { names[$0] }.filter { !$0.isEmpty }).sorted()
      return entry
    }
    return file
  }
}

/// Proton Authenticator's export, plain or encrypted with a password.
enum ProtonFile {
  private struct Export: Decodable { let entries: EntryList<Entry>? }

  /// AES-256-GCM under a key of Argon2id with 2 passes, 19 MiB and one lane.
  private struct Encrypted: Decodable {
    let version: Int
    let salt: String
    /// A nonce of 12 bytes, the ciphertext and its tag.
    let content: String
  }

  /// What an encrypted export authenticates in addition to its content.
  private static let purpose = Data("proton.authenticator.export.v1".utf8)

  private struct Entry: Decodable {
    let content: Content
    let note: String?
  }

  private struct Content: Decodable {
    let uri: String
    let name: String?
  }

  private static func decrypted(_ export: Encrypted, password: () throws -> String) throws -> Data {
    guard export.version == 1 else {
      throw VaultFormatError.unsupported(
        "the export of Proton Authenticator has version \(export.version), which is not known",
        hint: "export it without a password")
    }
    guard let salt = Data(base64Encoded: export.salt), salt.count == 16,
      let box = Data(base64Encoded: export.content), box.count >= 12 + 16
    else { throw VaultFormatError.malformed(.proton) }
    let key = try FileCipher.argon2id(try password(), salt: salt, passes: 2, kibibytes: 19 << 10, lanes: 1)
    guard
      let plain = FileCipher.open(
        nonce: box.prefix(12), ciphertext: box.dropFirst(12).dropLast(16), tag: box.suffix(16), with: key,
        authenticating: purpose)
    else { throw VaultFormatError.wrongPassword }
    return plain
  }

  static func read(_ data: Data, at time: Int64, most: Int, password: () throws -> String) throws -> ImportedFile {
    var export = try JSONDecoder.file(Export.self, data, .proton, most: most)
    if export.entries == nil {
      let plain = try decrypted(JSONDecoder.file(Encrypted.self, data, .proton, most: most), password: password)
      export = try JSONDecoder.file(Export.self, plain, .proton, most: most)
    }
    guard let entries = export.entries?.items else { throw VaultFormatError.malformed(.proton) }
    var file = ImportedFile(.proton)
    file.add(entries, named: { $0.content.name ?? "" }) { entry throws(EntryFault) in
      let (uri, name) = (entry.content.uri, entry.content.name)
      // The name is that of the account, which an otpauth link has, too. A link of Steam has no names.
      let isOTPAuth = uri.beginsInEitherCase(with: "otpauth:")
      var read = try SecretOrLink.entry(uri, issuer: isOTPAuth ? nil : name, account: isOTPAuth ? name : nil, at: time)
      read.note = entry.note ?? ""
      return read
    }
    return file
  }
}

/// Stratum's backup, earlier Authenticator Pro: plain or encrypted with a password.
enum StratumFile {
  private struct Backup: Decodable {
    let Authenticators: EntryList<Entry>
    let Categories: [Category]?
    let AuthenticatorCategories: [Binding]?
  }

  private struct Category: Decodable {
    let Id: String
    let Name: String
  }

  private struct Binding: Decodable {
    let CategoryId: String
    let AuthenticatorSecret: String
  }

  private struct Entry: Decodable {
    let `Type`: Int
    let Issuer: String?
    let Username: String?
    let Secret: String
    let Pin: String?
    let Algorithm: Int?
    let Digits: Int?
    let Period: Int?
    let Counter: Int64?
  }

  /// What begins an encrypted backup.
  private static let beginning = Data("AUTHENTICATORPRO".utf8)

  /// Decrypts: the beginning, 16 bytes of salt, a nonce of 12, the ciphertext of AES-256-GCM and its tag, under a key of
  /// Argon2id with 3 passes, 64 MiB and four lanes.
  private static func decrypted(_ data: Data, password: () throws -> String) throws -> Data {
    guard data.starts(with: beginning) else {
      throw VaultFormatError.unsupported(
        "the backup is encrypted as earlier versions of Stratum did, which is not read",
        hint: "restore it in Stratum, and back up again")
    }
    let rest = data.dropFirst(beginning.count)
    guard rest.count >= 16 + 12 + 16 else { throw VaultFormatError.malformed(.stratum) }
    let key = try FileCipher.argon2id(
      try password(), salt: rest.prefix(16), passes: 3, kibibytes: 64 << 10, lanes: 4)
    let box = rest.dropFirst(28)
    guard
      let plain = FileCipher.open(
        nonce: Data(rest.dropFirst(16).prefix(12)), ciphertext: box.dropLast(16), tag: box.suffix(16), with: key)
    else { throw VaultFormatError.wrongPassword }
    return plain
  }

  static func read(_ data: Data, at time: Int64, most: Int, password: () throws -> String) throws -> ImportedFile {
    let data = data.first == UInt8(ascii: "A") ? try decrypted(data, password: password) : data
    let backup = try JSONDecoder.file(Backup.self, data, .stratum, most: most)
    let names = Dictionary((backup.Categories ?? []).map { ($0.Id, $0.Name) }) { first, _ in first }
    let bindings = Dictionary(grouping: backup.AuthenticatorCategories ?? [], by: \.AuthenticatorSecret)
    var file = ImportedFile(.stratum)
    file.add(backup.Authenticators.items, named: { shownName($0.Issuer, $0.Username) }) { entry throws(EntryFault) in
      var fields = EntryFields()
      let isSteam = entry.Type == 4
      let kinds = [1: "hotp", 2: "totp", 3: "motp", 4: "steam", 5: "yandex"]
      fields.type = kinds[entry.Type] ?? "stratum-\(entry.Type)"
      fields.issuer = entry.Issuer
      fields.account = entry.Username
      // Mobile-OTP's secrets are hexadecimal digits or any text.
      if entry.Type == 3 { fields.secret = Array(entry.Secret.utf8) } else { fields.base32 = entry.Secret }
      guard let algorithm = [0: "SHA1", 1: "SHA256", 2: "SHA512"][entry.Algorithm ?? 0] else {
        throw EntryFault("the algorithm \(entry.Algorithm ?? 0)")
      }
      // Those of Steam have parameters of their own.
      fields.algorithm = isSteam ? nil : algorithm
      fields.digits = isSteam ? nil : entry.Digits
      fields.period = isSteam ? nil : entry.Period
      fields.counter = entry.Counter
      fields.tags = (bindings[entry.Secret] ?? []).compactMap { names[$0.CategoryId] }
      if let pin = entry.Pin { fields.others = ["stratum": .object(["Pin": .string(pin)])] }
      return try fields.entry(at: time)
    }
    return file
  }
}

/// A member that is a link, or a secret alone.
enum SecretOrLink {
  static func entry(_ text: String, issuer: String?, account: String?, at time: Int64) throws(EntryFault) -> VaultEntry
  {
    let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
    if EntryLink.isLink(text) {
      var entry = try LinkList.entry(text, at: time)
      // A link `steam://` has no names.
      if entry.issuer.isEmpty || text.beginsInEitherCase(with: LinkList.steam) { entry.issuer = issuer ?? entry.issuer }
      if entry.account.isEmpty { entry.account = account ?? "" }
      return entry
    }
    var fields = EntryFields()
    fields.issuer = issuer
    fields.account = account
    fields.base32 = text
    return try fields.entry(at: time)
  }
}

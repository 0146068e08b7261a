@testable import AuthenticatorVault
import ByteCoding
import Cryptography
import Foundation
import OneTimePasswords
import QREncoding
import VaultFormats

@testable import QRCodes

extension FuzzTarget {
  /// The files of other authenticators that have no target of their own, the vault that a partner shares, the names in
  /// a shared folder, and pictures. Each checks that an input of at most 8 KiB takes a bounded processor time.
  static let strangerFiles: [FuzzTarget] =
    [
      VaultFormat.andOTP, .bitwarden, .freeOTP, .proton, .stratum, .otpClient, .ente, .keePassXC, .onePassword, .maFile,
    ].map(importer) + [.sharedVault, .sharedNames, .picture]

  private static func importer(_ format: VaultFormat) -> FuzzTarget {
    FuzzTarget(
      name: "import-\(format.rawValue)", longest: 8192,
      words: [
        "\"secret\":", "\"digits\":", "\"counter\":9223372036854775807", "\"period\":0", "1e999", "[[[[", "{\"a\":",
        "\\u0000", "otpauth://totp/", "steam://", "\",\"", "\r\n", ";",
      ],
      seeds: { StrangerFileInvariants.samples[format, default: []].map { Array($0.utf8) } },
      accepts: { input throws(InvariantViolation) in try StrangerFileInvariants.importer(input, format) })
  }

  private static let sharedVault = FuzzTarget(
    name: "shared-vault", longest: 8192,
    words: [
      "\"tokens\":", "\"removed\":", "\"of\":[", "\"until\":", "\"added\":", "\"at\":[", "\"updated\":", "\"created\":",
      "9223372036854775807", "-9223372036854775808", "9007199254740992", "\"slotsChanged\":", "\"n\":1048576",
    ],
    seeds: StrangerFileInvariants.sharedVaults, accepts: StrangerFileInvariants.sharedVault)

  private static let sharedNames = FuzzTarget(
    name: "shared-names", longest: 512,
    words: [
      "codes", ".vault", ".sync-conflict-20261124-080001-ABCDEF7", " (conflicted copy 2026-11-24 080001)", " (1)",
      "-DESKTOP-4F2K9QX", "-safeBackup-0001", "[Conflict]", "_conflict-20261124-080001",
    ],
    seeds: {
      [
        "codes (1).vault", "codes.vault.backup", "codes-host.vault",
        "codes.sync-conflict-20261124-080001-ABCDEF7.vault",
      ]
      .map { Array($0.utf8) }
    }, accepts: StrangerFileInvariants.sharedName)

  private static let picture = FuzzTarget(
    name: "picture", longest: 8192, words: ["IHDR", "PLTE", "tRNS", "IDAT", "IEND", "zTXt", "iCCP", "\u{FF}\u{D8}"],
    seeds: { [try QRCode("text").png(scale: 1), try QRCode("other text").png(scale: 2), cutOff] },
    accepts: StrangerFileInvariants.picture)
}

/// A picture whose last chunk, a compressed text, claims 1.3 GiB and is cut off.
private let cutOff: [UInt8] =
  [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + "IHDR".utf8 + [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]
  + [0x3A, 0x7E, 0x9B, 0x55, 0x52, 0, 0, 0] + "zTXta".utf8

/// What strangers' files may do: be read or refused, within a time, and nothing else.
enum StrangerFileInvariants {
  /// The processor time of an input in seconds, with the sanitizer. Most take a thousandth.
  private static let longest = 5.0

  private static func bounded<Value>(
    _ body: () throws(InvariantViolation) -> Value
  ) throws(InvariantViolation) -> Value {
    let start = processorTime()
    let value = try body()
    try require(processorTime() - start <= longest, "an input takes a bounded time")
    return value
  }

  static let samples: [VaultFormat: [String]] = [
    .andOTP: [
      #"[{"secret":"GEZDGNBV","issuer":"A","label":"a","digits":8,"type":"TOTP","algorithm":"SHA256","period":60}]"#
    ],
    .otpClient: [
      #"[{"type":"HOTP","label":"a","issuer":"A","secret":"GEZDGNBV","digits":6,"algo":"SHA1","counter":5}]"#
    ],
    .freeOTP: [
      #"{"tokens":[{"algo":"SHA1","counter":0,"digits":6,"issuerExt":"A","label":"a","period":30,"secret":[49,-1]}]}"#
    ],
    .bitwarden: [
      #"{"encrypted":false,"items":[{"name":"A","login":{"username":"a","totp":"steam://GEZDGNBV"}}]}"#,
      "folder,name,login_username,login_totp\nf,\"A \"\"b\"\"\",a,GEZDGNBV\n",
    ],
    .keePassXC: ["\"Group\",\"Title\",\"TOTP\"\r\n\"Root/x\",\"A\nB\",\"otpauth://totp/a?secret=GEZDGNBV\"\r\n"],
    .onePassword: [
      "Title;Username;OTPAuth;Tags\nA;a;GEZDGNBV;x\n",
      #"{"accounts":[{"vaults":[{"items":[{"details":{"sections":[{"fields":[{"value":{"totp":"GEZDGNBV"}}]}]}}]}]}]}"#,
    ],
    .maFile: [#"{"shared_secret":"MTIzNA==","account_name":"a"}"#],
    .proton: [#"{"entries":[{"content":{"uri":"otpauth://totp/a?secret=GEZDGNBV&issuer=A","name":"a"},"note":"n"}]}"#],
    .stratum: [
      #"{"Authenticators":[{"Type":2,"Issuer":"A","Username":"a","Secret":"GEZDGNBV","Algorithm":1,"Digits":6}]}"#
    ],
    .ente: [
      "otpauth://totp/E:b?secret=GEZDGNBV&codeDisplay=%7B%22trashed%22%3Atrue%7D\notpauth://steam/S?secret=GEZDGNBV"
    ],
  ]

  /// What was read can be put into a vault, removed, restored, and written.
  static func importer(_ input: [UInt8], _ format: VaultFormat) throws(InvariantViolation) -> Bool {
    try bounded { () throws(InvariantViolation) in
      struct Encrypted: Error {}
      _ = VaultReader.detect(input)
      guard let file = try? VaultReader.read(input, as: format, at: 7, password: { throw Encrypted() }),
        !file.entries.isEmpty
      else { return false }
      var vault = Vault()
      for entry in file.entries { vault.add(entry, at: 7) }
      try acts(on: &vault)
      return true
    }
  }

  /// Everything that a person can do keeps a vault that is written and read as the same.
  private static func acts(on vault: inout Vault) throws(InvariantViolation) {
    for entry in vault.entries {
      try? vault.edit(entry.id, at: 8) { $0.note = "n" }
      _ = try? entry.code(at: Date(timeIntervalSince1970: 59))
      try? vault.remove(entry.id, at: 9)
      try require(vault[entry.id] == nil, "a removed entry is gone")
      try require((try? Vault(json: vault.json())) == vault, "a vault with removals is read as the same")
      vault.purge(at: 10)
      try? vault.restore(entry.id, at: 11)
      try require(vault[entry.id] != nil, "a restored entry is there")
    }
    vault.purge(at: .max)
    try require((try? Vault(json: vault.json())) == vault, "a vault is read as the same")
  }

  // MARK: The shared folder

  private static let key = VaultKey(bytes: [UInt8](repeating: 7, count: 32)) ?? VaultKey()

  private static let own: Vault = {
    var vault = Vault()
    let entries = (0..<3).map { VaultEntry(issuer: "\($0)", account: "a", secret: [1, UInt8($0)], at: 7) }
    for entry in entries { vault.add(entry, at: 7) }
    try? vault.remove(entries[0].id, at: 9)
    return vault
  }()

  /// The first line of a file and the JSON of its vault, one after the other.
  static func sharedVaults() throws -> [[UInt8]] {
    let slot = try PassphraseSlot(key, passphrase: "p", cost: 1024)
    let file = VaultFile(own, key: key, slots: .init([slot], changedAt: 7))
    let header = Array(file.bytes.prefix { $0 != UInt8(ascii: "\n") })
    return [header + [0x0A] + Array(own.json()), header + [0x0A] + Array("{\"tokens\":[],\"version\":1}".utf8)]
  }

  /// A partner has the key, so that whatever it writes is authentic.
  static func sharedVault(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    try bounded { () throws(InvariantViolation) in
      let parts = input.split(separator: 0x0A, maxSplits: 1)
      guard parts.count == 2 else { return false }
      let box = CombinedBox.seal(Data(parts[1]), header: Data(parts[0]), with: key).base64EncodedString()
      let lines = Array(parts[0]) + [0x0A] + Array(box.utf8) + [0x0A]
      let bytes = lines + Array(Hex.encode(SHA256.hash(lines)).utf8) + [0x0A]
      guard let file = try? VaultFile(bytes: Data(bytes)), let theirs = try? file.vault(key: key) else { return false }
      _ = try? file.impossibleValues(key: key)
      try require(file.slots.slots.count <= VaultFile.mostSlots, "a file has few slots")
      var (mine, other) = (own, theirs)
      mine.merge(theirs)
      other.merge(own)
      try require(mine == other, "a merge is commutative")
      mine.merge(theirs)
      try require(mine == other && mine.json() == other.json(), "a merge is idempotent")
      try acts(on: &mine)
      return true
    }
  }

  /// A copy has the beginning of the file's name, and no name of the user's own is one.
  static func sharedName(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    try bounded { () throws(InvariantViolation) in
      let name = String(decoding: input, as: UTF8.self)
      guard ConflictName.isCopy(name, of: "codes.vault", host: "host") else { return false }
      try require(name.hasPrefix("codes") && name.contains(".vault") && name.utf8.count <= 255, "a copy has its name")
      for word in ["backup", "(copy)", "old"] where name.hasSuffix(word) || name.hasSuffix("\(word).vault") {
        throw InvariantViolation(invariant: "a backup is no conflict copy", detail: name)
      }
      return true
    }
  }

  // MARK: Pictures

  /// A picture is decoded within a bounded time. Codes are looked for in small ones alone: of larger ones the program
  /// bounds the time by a process of its own.
  static func picture(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    try bounded { () throws(InvariantViolation) in
      let image =
        PNGImage.isPNG(input)
        ? try? PNGImage.decode(input, on: 255) : JPEGImage.isJPEG(input) ? try? JPEGImage.decode(input) : nil
      guard let image else { return false }
      try require(image.pixels.count == image.width * image.height, "a picture has all its pixels")
      guard image.width <= 128, image.height <= 128 else { return true }
      _ = try? QRReader.texts(in: input)
      return true
    }
  }
}

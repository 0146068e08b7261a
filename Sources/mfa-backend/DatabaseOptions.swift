internal import ArgumentParser
internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import MFAStore

/// Which database a command works on, and the keys that its secrets are sealed under.
struct DatabaseOptions: ParsableArguments {
  @Option(help: "sqlite:///path or postgres://user@host/database")
  var database: String?

  @Flag(help: "Keep everything in memory, and forget it at the end.")
  var ephemeral = false

  @Option(
    name: .customLong("keys"),
    help: "JSON file with the key-encryption keys: [{\"name\": …, \"key\": 32 bytes in base64}], the current one first."
  )
  var keysFile: String?

  func validate() throws {
    guard ephemeral != (database != nil) else { throw ValidationError("name either --database or --ephemeral") }
    guard ephemeral || keysFile != nil else {
      throw ValidationError("--keys is required with --database: without it nothing sealed could be read again")
    }
  }

  func open() throws -> any Store {
    try database.map(Self.open) ?? SQLiteMFAStore.ephemeral()
  }

  static func open(_ database: String) throws -> any Store {
    if database.hasPrefix("postgres://") || database.hasPrefix("postgresql://") {
      return try PostgresMFAStore(url: database)
    }
    guard database.hasPrefix("sqlite:///") else {
      throw ValidationError("--database \(database): write sqlite:///path or postgres://…")
    }
    return try SQLiteMFAStore(path: String(database.dropFirst("sqlite://".count)))
  }

  func keys() throws -> KeyEncryptionKeys {
    guard let keysFile else { return .ephemeral(.system) }
    struct Entry: Decodable { let name: String, key: String }
    let entries = try JSONDecoder().decode([Entry].self, from: Data(contentsOf: URL(filePath: keysFile)))
    return try KeyEncryptionKeys(entries.map { ($0.name, Base64.decode($0.key) ?? []) })
  }
}

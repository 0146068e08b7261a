import Foundation
import TestSupport
import Testing

/// Checks the places and imports of the source files.
@Suite("Layers")
struct ArchitectureTests {
  private static let sources = ProjectFile.url("Sources/Backend")

  /// Returns the Swift files in a folder and its subfolders, with their texts.
  private static func files(in folder: String) throws -> [(name: String, text: String)] {
    let place = sources.appendingPathComponent(folder)
    let names = try FileManager.default.subpathsOfDirectory(atPath: place.path).filter { $0.hasSuffix(".swift") }
    return try names.map { name in
      (folder + "/" + name, try String(contentsOf: place.appendingPathComponent(name), encoding: .utf8))
    }
  }

  /// Returns the modules that `text` imports.
  private static func imports(of text: String) -> Set<String> {
    Set(
      text.split(separator: "\n").compactMap { line in
        let words = line.split(separator: " ")
        guard let place = words.firstIndex(of: "import"), place <= 2, words.count > place + 1 else { return nil }
        return String(words[place + 1])
      })
  }

  private static let statements = ["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM"]

  @Test(
    "A-004 each of the five layers is a folder, and controllers and services hold no SQL",
    arguments: [
      ("MFAService/Controllers", false), ("MFADomain/Services", false), ("MFADomain/Models", false),
      ("MFAStore/Repositories", true), ("mfa-backend/Settings", false),
    ])
  func layers(_ folder: String, _ hasSQL: Bool) throws {
    let files = try Self.files(in: folder)
    #expect(!files.isEmpty)
    let speaking = files.filter { file in
      Self.statements.contains { file.text.contains("\"" + $0) || file.text.contains("\n      " + $0) }
    }
    #expect(speaking.isEmpty != hasSQL, "\(speaking.map(\.name))")
  }

  @Test("A-004 the domain imports neither HTTP nor a database, and controllers import no database")
  func arrows() throws {
    let transports: Set = ["Hummingbird", "HummingbirdCore", "HTTPTypes", "NIOCore", "NIOHTTP1", "NIOWebSocket"]
    let databases: Set = ["GRDB", "CPostgres", "Databases", "MFAStore"]
    for file in try Self.files(in: "MFADomain") {
      #expect(Self.imports(of: file.text).isDisjoint(with: transports.union(databases)), "\(file.name)")
    }
    for file in try Self.files(in: "MFAService") {
      #expect(Self.imports(of: file.text).isDisjoint(with: databases), "\(file.name)")
    }
  }

  @Test(
    "services send messages and notices only through the unit of work",
    arguments: ["hub.notify(", "outbox.send(", "records.append("])
  func unitOfWork(_ call: String) throws {
    let files = try Self.files(in: "MFADomain/Services").filter { $0.text.contains(call) }
    #expect(files.map(\.name) == ["MFADomain/Services/UnitOfWork.swift"])
  }

  @Test("A-174 cryptography comes only from swift-crypto and NIOSSL")
  func cryptography() throws {
    // CryptoExtras, for RSA, is a product of swift-crypto. ID tokens are verified by `OIDCClient`, with JWTKit.
    let known: Set = ["Crypto", "CryptoExtras", "NIOSSL"]
    let others: Set = ["COpenSSL", "Cryptography", "CryptoSwift", "_CryptoExtras", "CommonCrypto", "Sodium"]
    var used: Set<String> = []
    let folders = [
      "MFADomain", "MFAStore", "MFADelivery", "MFAService", "mfa-backend", "../Common/MFAWire",
    ]
    for folder in folders {
      for file in try Self.files(in: folder) { used.formUnion(Self.imports(of: file.text)) }
    }
    #expect(used.isSuperset(of: known))
    #expect(used.isDisjoint(with: others))
  }
}

import AttestGate
import ByteCoding
import Foundation
import GRDB
import PostgresServers
import StoreConformance
import TestSupport
import Testing

@Suite("Migrating, checking and rotating", .serialized)
struct CheckTests {
  @Test("A migration reports its steps, and a second one that the store is up to date", arguments: StoreKind.allCases)
  func migrate(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      let first = try await store("migrate", "--store", url, "--json").object
      #expect(first["from"] as? Int == 0)
      #expect((first["steps"] as? [String])?.count == first["to"] as? Int)
      let second = try await store("migrate", "--store", url)
      #expect(second.status == 0)
      #expect(second.output.first?.contains("up to date") == true, "\(second)")
      #expect(try await store("check", "--store", url).output.contains { $0.contains("damaged") } == false)
    }
  }

  @Test("Concurrent migrations of a new store all succeed", arguments: StoreKind.allCases)
  func migrateAtOnce(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      for _ in 0..<3 {
        let url = try await kind.newURL(in: folder)
        try await withThrowingTaskGroup(of: Transcript.self) { group in
          for _ in 0..<8 { group.addTask { try await store("migrate", "--store", url) } }
          for try await transcript in group { #expect(transcript.status == 0, "\(transcript)") }
        }
      }
    }
  }

  @Test("A store of a newer version is refused and not changed", arguments: StoreKind.allCases)
  func newer(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      #expect(try await store("migrate", "--store", url).status == 0)
      let table = kind == .sqlite ? "grdb_migrations" : "sallyport_migrations"
      try await change(kind, url, "INSERT INTO \(table) VALUES (\(kind == .sqlite ? "'9 of the future'" : "99"))")
      for command in ["migrate", "check"] {
        let refused = try await store(command, "--store", url)
        #expect(refused.status == 69)
        #expect(refused.errors.first?.contains("newer version") == true, "\(refused)")
      }
    }
  }

  @Test("A valid store passes the check; a missing store is not created")
  func inOrder() async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await StoreKind.sqlite.newURL(in: folder)
      #expect(try await store("check", "--store", url).status == 66)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
      _ = try await BackupTests.fill(StoreKind.sqlite.open(url))
      let sound = try await store("check", "--store", url)
      #expect(sound.status == 0, "\(sound)")
      #expect(sound.output.first?.hasSuffix("no problems found") == true, "\(sound)")
    }
  }

  @Test("Commands find the store in a configuration with errors in other sections")
  func placesAlone() async throws {
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/gate.yaml"
      let url = try await StoreKind.sqlite.newURL(in: folder)
      let yaml = """
        store: { url: "\(url)" }
        tls: { cert_file: none, key_file: none }
        admin: { listen: "127.0.0.1:1", token_file: none }
        app_attest: { challenge_ttl: 30s, enforcement: perhaps }

        """
      try yaml.write(toFile: file, atomically: true, encoding: .utf8)
      #expect(try await store("migrate", "-c", file).status == 0)
      #expect(try await store("check", "-c", file).status == 0)
      #expect(try await store("backup", folder + "/copy", "-c", file).status == 0)
      #expect(try await store("rotate", "-c", file).status == 0)
      #expect(try await store("restore", folder + "/copy", "-c", file).status == 0)

      try yaml.replacing("challenge_ttl", with: "challenge_keys_file: keys, challenge_ttl")
        .write(toFile: file, atomically: true, encoding: .utf8)
      let refused = try await store("rotate", "-c", file)
      #expect(refused.status == 78)
      #expect(refused.errors.first == "error: the challenge keys are in \(folder)/keys, not in the store")

      try yaml.replacing("30s", with: "long").write(toFile: file, atomically: true, encoding: .utf8)
      let malformed = try await store("rotate", "-c", file)
      #expect(malformed.status == 78)
      #expect(malformed.errors.first?.contains("app_attest.challenge_ttl: ") == true, "\(malformed)")
    }
  }

  static let breaches = [
    (
      "UPDATE attested_keys SET key_hash = 'x' WHERE revoked_at IS NOT NULL AND counter > 0",
      "hash does not match their id"
    ),
    ("UPDATE attested_keys SET used_counters = 0", "could be used again"),
    ("UPDATE attested_keys SET environment = 'moon'", "damaged"),
    ("DELETE FROM receipts", "keys without a receipt"),
    ("DELETE FROM receipt_exchanges", "never exchanged for a risk metric"),
    ("UPDATE receipt_exchanges SET is_revoked = NOT is_revoked", "does not follow the revocation"),
    ("DELETE FROM nonce_watermark", "missing nonce watermark"),
    ("DELETE FROM change_position", "missing change position"),
    ("INSERT INTO changes (position) VALUES (99999)", "beyond the newest"),
    ("UPDATE nonce_watermark SET issued_at = 9000000000000", "are no longer needed"),
  ]

  @Test(
    "Each inconsistency is found, with advice",
    arguments: StoreKind.allCases.flatMap { kind in breaches.map { (kind, $0) } })
  func found(_ kind: StoreKind, _ breach: (statement: String, text: String)) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      _ = try await BackupTests.fill(kind.open(url))
      try await change(kind, url, breach.statement)
      let result = try await store("check", "--store", url, "--json")
      let findings = try #require(result.object["findings"] as? [[String: String]], "\(result)")
      let finding = try #require(findings.first { $0["text"]?.contains(breach.text) == true }, "\(findings)")
      #expect(finding["advice"]?.isEmpty == false)
      #expect(result.status == (findings.contains { $0["weight"] == "problem" } ? 1 : 0))
    }
  }

  @Test(
    "Damaged evidence of an Android key is found, and its key has no receipt to miss", arguments: StoreKind.allCases)
  func damagedEvidence(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      _ = try await BackupTests.fill(kind.open(url))
      try await change(
        kind, url,
        kind == .sqlite
          ? "UPDATE attested_keys SET android = 'level=tee' WHERE android IS NOT NULL"
          : "UPDATE android_keys SET evidence = 'level=tee'")
      let result = try await store("check", "--store", url)
      #expect(result.status == 1)
      #expect(
        result.output.contains {
          $0.hasPrefix("problem: damaged: the key ") && $0.hasSuffix(": attested_keys.android is malformed")
        }, "\(result)")
      #expect(!result.output.joined().contains("without a receipt"), "\(result)")
    }
  }

  @Test("A file that other users can read is found")
  func mode() async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await StoreKind.sqlite.newURL(in: folder)
      _ = try await BackupTests.fill(StoreKind.sqlite.open(url))
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o644], ofItemAtPath: String(url.dropFirst("sqlite://".count)))
      let result = try await store("check", "--store", url)
      #expect(result.status == 1)
      #expect(result.output.contains { $0.contains("chmod 600") }, "\(result)")
    }
  }

  @Test("A rotation keeps old nonces valid, a rotation with --now does not", arguments: StoreKind.allCases)
  func rotate(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      let gate = try kind.open(url)
      let challenges = Challenges(storage: gate)
      try await challenges.prepare()
      let nonce = try #require(challenges.issue(at: .now())?.nonce)
      #expect(try await store("rotate", "--store", url).status == 0)
      try await challenges.refresh()
      try challenges.check(nonce, at: .now())
      #expect(challenges.issue(at: .now())?.nonce.bytes.first != nonce.bytes.first)
      #expect(try await store("rotate", "--now", "--store", url).status == 0)
      try await challenges.refresh()
      #expect(throws: NonceRejection.self) { try challenges.check(nonce, at: .now()) }
      await gate.close()
    }
  }

  @Test("A rotation with --identity leaves no identity key of before", arguments: StoreKind.allCases)
  func rotateIdentity(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      let gate = try kind.open(url)
      try await Challenges(storage: gate).prepare()
      let keys = IdentityKeys(storage: gate)
      try await keys.prepare()
      let old = try #require(keys.signing(at: .now())?.kid)
      #expect(try await store("rotate", "--now", "--store", url).status == 0)
      try await keys.refresh()
      #expect(keys.signing(at: .now())?.kid == old)
      #expect(try await store("rotate", "--now", "--identity", "--store", url).status == 0)
      try await keys.refresh()
      #expect(keys.published(at: .now()).count == 1 && keys.signing(at: .now())?.kid != old)
      await gate.close()
    }
  }

  @Test("A rotation says that challenge keys in a file stay valid, and how to replace them")
  func rotateWithKeyFile() async throws {
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/gate.yaml"
      let url = try await StoreKind.sqlite.newURL(in: folder)
      try "store: { url: \"\(url)\" }\n".write(toFile: file, atomically: true, encoding: .utf8)
      #expect(try await store("migrate", "-c", file).status == 0)
      let rotated = try await store("rotate", "--now", "--identity", "-c", file)
      let done = "identity key replaced; challenge key rotated; nonces of the old keys are refused"
      #expect(rotated.output == ["\(url): \(done)"] && rotated.errors == [], "\(rotated)")

      try "store: { url: \"\(url)\" }\napp_attest: { challenge_keys_file: keys }\n"
        .write(toFile: file, atomically: true, encoding: .utf8)
      let kept = try await store("rotate", "--now", "--identity", "-c", file)
      #expect(kept.status == 0)
      let stays = "identity key replaced; the challenge keys are in \(folder)/keys, and stay valid"
      #expect(kept.output == ["\(url): \(stays)"], "\(kept)")
      let place = "on the first line of \(folder)/keys on every gate"
      let hint = "hint: put a new key \(place), remove the old keys, then restart the gates"
      #expect(kept.errors == [hint], "\(kept)")
      let result = try await store("rotate", "--now", "--identity", "-c", file, "--json").object
      #expect(result["old_refused"] as? Bool == false && result["identity_replaced"] as? Bool == true)
      #expect(try await store("rotate", "--identity", "-c", file).errors == [])
      let refused = try await store("rotate", "--now", "-c", file)
      #expect(refused.status == 78 && refused.errors.last?.contains("remove the old keys") == true, "\(refused)")
    }
  }

  @Test("A rotation of a missing store creates none")
  func rotateNothing() async throws {
    try await Places.withTemporaryFolder { folder in
      let result = try await store("rotate", "--now", "--store", "sqlite://\(folder)/typo.db")
      #expect(result.status == 66)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
    }
  }

  @Test("Each command shows an example", arguments: ["migrate", "check", "backup", "restore", "rotate"])
  func help(_ command: String) async throws {
    let help = try await store(command, "--help")
    #expect(help.status == 0)
    #expect(help.output.contains { $0.contains("sallyport store \(command)") })
  }

  /// Changes the tables in a way that no command does.
  private func change(_ kind: StoreKind, _ url: String, _ statement: String) async throws {
    switch kind {
    case .sqlite:
      let queue = try DatabaseQueue(path: String(url.dropFirst("sqlite://".count)))
      try await queue.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; \(statement)")
      }
    case .postgres:
      let schema = url[(url.range(of: "search_path%3D")?.upperBound ?? url.endIndex)...]
      try await PostgresServer.shared().sql("SET search_path = \(schema); \(statement)")
    }
  }
}

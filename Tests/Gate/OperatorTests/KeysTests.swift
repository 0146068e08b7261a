import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateProcesses
import GateService
import SQLiteStore
import TestSupport
import Testing

@Suite("Commands about keys, on a store without a gate", .serialized, .timeLimit(.minutes(5)))
struct KeysTests {
  @Test("With --store, no store setting of the configuration applies, not even its password")
  func namedStore() async throws {
    try await StoreBench.with([try Fixture.entry(1)]) { bench in
      let file = bench.folder + "/gate.yaml"
      try "store: { url: \"postgres://h/x\", password_file: none }\n".write(
        toFile: file, atomically: true, encoding: .utf8)
      let listed = try await sallyport(["keys", "list", "-c", file, "--store", bench.url])
      #expect(listed.status == 0 && listed.output.count == 1, "\(listed)")
    }
  }

  @Test("A list has every key once, across pages; a line has eight values, JSON one object for each line")
  func list() async throws {
    try await StoreBench.with((0..<1203).map { try Fixture.entry($0, revoked: $0 % 3 == 0) }) { bench in
      let store = ["--store", bench.url]
      let all = try await sallyport(["keys", "list"] + store)
      #expect(all.status == 0)
      let hashes = all.output.map { String($0.split(separator: "\t")[0]) }
      #expect(Set(hashes) == Set(try (0..<1203).map(Fixture.hash)))
      #expect(hashes.count == 1203)
      #expect(all.output.allSatisfy { $0.split(separator: "\t").count == 8 })
      let revoked = try await sallyport(["keys", "list", "--state", "revoked", "--json"] + store)
      let decoded = try revoked.output.map { try JSONDecoder().decode(KeyDescription.self, from: Data($0.utf8)) }
      #expect(decoded.count == 401)
      #expect(decoded.allSatisfy { $0.state == "revoked" && $0.revokedAt != nil && $0.keyID == nil })
      #expect(try await sallyport(["keys", "list", "--limit", "7"] + store).output.count == 7)
      #expect(try await sallyport(["keys", "list", "--app", "AAABBBCCC1.com.example.other"] + store).output == [])
      let prefix = String(try Fixture.hash(5).prefix(6))
      #expect(try await sallyport(["keys", "list", "--prefix", prefix] + store).output.count == 1)
      // Each seventh key was never used, the others as many seconds after the first registration as their number says.
      let instant = Fixture.now.advanced(by: .seconds(100)).description
      let unused = (0..<1203).filter { $0 < 100 || $0 % 7 == 0 }
      let old = ["keys", "list", "--unused-since"]
      #expect(try await sallyport(old + [instant] + store).output.count == unused.count)
      #expect(try await sallyport(old + [instant, "--prefix", prefix] + store).output.count == 1)
      #expect(try await sallyport(old + ["2027-01-15T08:00:05Z", "--prefix", prefix] + store).output == [])
      #expect(try await sallyport(old + ["36500d"] + store).output == [])
    }
  }

  @Test("The limit of a list by a prefix is for the keys that the other filters select, in their order")
  func limitedPrefix() async throws {
    let numbers = try Fixture.alike.sorted { try Fixture.hash($0) < Fixture.hash($1) }
    try await StoreBench.with(try numbers.map { try Fixture.entry($0, revoked: $0 == numbers.last) }) { bench in
      let hashes = try numbers.map(Fixture.hash)
      let list = ["keys", "list", "--store", bench.url, "--limit", "1", "--prefix", String(hashes[0].prefix(6))]
      let cases: [([String], String)] = [
        ([], hashes[0]), (["--state", "revoked"], hashes[1]), (["--sort=-key"], hashes[1]),
      ]
      for (options, expected) in cases {
        let listed = try await sallyport(list + options)
        #expect(listed.output.map { $0.prefix { $0 != "\t" } } == [expected[...]], "\(options): \(listed)")
      }
    }
  }

  @Test("A key is found by its hash, a prefix of it, or its device's id, and shown completely")
  func show() async throws {
    try await StoreBench.with([try Fixture.entry(4), try Fixture.entry(Fixture.dashed)]) { bench in
      let hash = try Fixture.hash(4)
      let keyID = try Fixture.key(4).keyID.base64
      let forms = [OtherBase64.urlSafeWithPadding, .lines].map { $0.text(keyID) }
      for name in [hash, String(hash.prefix(6)), keyID] + forms {
        let shown = try await sallyport(["keys", "show", name, "--json", "--store", bench.url])
        let key = try shown.json(KeyDescription.self)
        #expect(key == KeyDescription(whole: try Fixture.entry(4).record, sessions: nil))
        #expect(key.category == "app_store" && key.bundleVersion == "1.4" && key.counter == 4)
      }
      let text = try await sallyport(["keys", "show", hash, "--store", bench.url])
      #expect(text.output.contains("registered      2027-01-15T08:00:00Z"))
      let dashed = try await sallyport(
        ["keys", "show", "--store", bench.url, "--", String(try Fixture.hash(Fixture.dashed).prefix(8))])
      #expect(dashed.status == 0)
    }
  }

  @Test("An ambiguous prefix is refused and changes nothing; one more character is enough")
  func ambiguity() async throws {
    try await StoreBench.with(try Fixture.alike.map { try Fixture.entry($0) }) { bench in
      let hashes = try Fixture.alike.map(Fixture.hash)
      #expect(hashes[0].prefix(6) == hashes[1].prefix(6))
      let store = ["--store", bench.url]
      let refused = try await sallyport(["keys", "revoke", String(hashes[0].prefix(6))] + store)
      #expect(refused.status == 64)
      // Those that follow the store's order of key ids.
      let candidates = [hashes, hashes.reversed()].map { $0.map { $0.prefix(16) }.joined(separator: ", ") }
      #expect(
        candidates.map { "error: Several keys begin with these characters: \($0)" }.contains(refused.errors[0]),
        "\(refused)")
      #expect(refused.errors.dropFirst() == ["hint: give more characters of the hash"])
      // The first name is valid, the second is ambiguous: no key is revoked.
      let half = try await sallyport(["keys", "revoke", hashes[0], String(hashes[0].prefix(6))] + store)
      #expect(half.status == 64)
      #expect(try await bench.record(Fixture.alike[0])?.revokedAt == nil)
      #expect(try await sallyport(["keys", "revoke", String(hashes[0].prefix(7))] + store).status == 0)
      #expect(try await bench.record(Fixture.alike[0])?.revokedAt != nil)
      #expect(try await bench.record(Fixture.alike[1])?.revokedAt == nil)
    }
  }

  @Test("Without a terminal a key is removed only with --yes; on a terminal the answer decides")
  func remove() async throws {
    try await StoreBench.with([try Fixture.entry(1), try Fixture.entry(3)]) { bench in
      let remove = ["keys", "rm", try Fixture.hash(1), "--store", bench.url]
      let refused = try await sallyport(remove)
      #expect(refused.status == 64)
      #expect(refused.isFailure)
      #expect(try await bench.record(1) != nil)
      // `script` gives the command a terminal, and exits with its status.
      func typed(_ answer: String) async throws -> (status: Int32?, output: String) {
        let command = ([try Places.product("sallyport")] + remove).joined(separator: " ")
        let (exit, output, _) = try await ChildProcess.run(
          Places.tool("script"), ["-qec", command, "/dev/null"], input: Array((answer + "\n").utf8))
        return (exit.code, output.joined(separator: "\n"))
      }
      let no = try await typed("n")
      #expect(no.status == 1)
      #expect(no.output.contains("[y/N]"))
      #expect(try await bench.record(1) != nil)
      #expect(try await typed("y").status == 0)
      #expect(try await bench.record(1) == nil)
      #expect(try await sallyport(["keys", "rm", Fixture.hash(3), "--yes", "--store", bench.url]).status == 0)
      #expect(try await bench.record(3) == nil)
    }
  }

  /// A failing command and its exit status. `STORE` stands for the URL of a store with one key.
  struct Failing: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let arguments: [String]
    let status: Int32

    init(_ description: String, _ arguments: [String], _ status: Int32) {
      testDescription = description
      self.arguments = arguments
      self.status = status
    }
  }

  static let failing = [
    Failing("an unknown key", ["keys", "show", "AAAAAAAAAA", "--store", "STORE"], 66),
    Failing("a text that cannot name a key", ["keys", "show", "AAA", "--store", "STORE"], 64),
    Failing("no key", ["keys", "revoke", "--store", "STORE"], 64),
    Failing("an unknown option", ["keys", "list", "--colour", "--store", "STORE"], 64),
    Failing("an unknown state", ["keys", "list", "--state", "gone", "--store", "STORE"], 64),
    Failing("a time that is no time", ["keys", "list", "--unused-since", "90", "--store", "STORE"], 64),
    Failing("a limit of zero", ["keys", "list", "--limit", "0", "--store", "STORE"], 64),
    Failing("an invalid app", ["keys", "list", "--app", "x", "--store", "STORE"], 64),
    Failing("a missing store", ["keys", "list", "--store", "sqlite:///nowhere/state.db"], 66),
    Failing("an unreachable store", ["keys", "list", "--store", "postgres:///x?host=/nowhere"], 69),
    Failing("a URL of an unsupported store", ["keys", "list", "--store", "mysql://x"], 64),
    Failing("a missing configuration", ["keys", "list", "-c", "/nowhere/gate.yaml"], 78),
    Failing("an export into a missing folder", ["keys", "export", "/nowhere/keys", "--store", "STORE"], 73),
    Failing("an import of a missing file", ["keys", "import", "/nowhere/keys", "--store", "STORE"], 66),
    Failing("an import of another file format", ["keys", "import", "/etc/passwd", "--store", "STORE"], 65),
    Failing("sessions without a gate", ["sessions", "list", "-c", "CONFIG"], 69),
    Failing("an invalid session id", ["sessions", "close", "../keys", "-c", "CONFIG"], 64),
  ]

  @Test("Each failure has its exit status, one error line and one hint, and no output", arguments: failing)
  func failure(_ failing: Failing) async throws {
    try await StoreBench.with([try Fixture.entry(1)]) { bench in
      let config = bench.folder + "/gate.yaml"
      try Data("admin: { listen: \"unix:\(bench.folder)/admin.sock\" }\nstore: { url: \"\(bench.url)\" }\n".utf8)
        .write(to: URL(fileURLWithPath: config))
      let transcript = try await sallyport(
        failing.arguments.map { ["STORE": bench.url, "CONFIG": config][$0] ?? $0 }, in: bench.folder)
      #expect(transcript.status == failing.status, "\(transcript)")
      #expect(transcript.isFailure && transcript.errors.count == 2, "\(transcript)")
      #expect(transcript.output == [])
    }
  }

  @Test("Errors elsewhere in a configuration do not block commands about keys; errors of the store do")
  func brokenConfiguration() async throws {
    try await StoreBench.with([try Fixture.entry(1)]) { bench in
      let config = bench.folder + "/gate.yaml"
      func list(_ yaml: String) async throws -> Transcript {
        try Data(yaml.utf8).write(to: URL(fileURLWithPath: config))
        return try await sallyport(["keys", "list", "-c", config], in: bench.folder)
      }
      #expect(try await list("tls: { cert_file: gone.pem }\nstore: { url: \"\(bench.url)\" }").output.count == 1)
      let refused = try await list("store: { url: \"\(bench.url)\", uri: x }")
      #expect(refused.status == 78)
      let fault = "error: \(config):1:\(19 + bench.url.count): store.uri: unknown key (did you mean store.url)"
      #expect(refused.errors.first == fault)
      #expect(refused.isFailure)
      #expect(try await list("store: { url: ").status == 78)
    }
  }

  @Test(
    "Every command has a help text with an example",
    arguments: [
      ["keys"], ["keys", "list"], ["keys", "show"], ["keys", "revoke"], ["keys", "restore"], ["keys", "rm"],
      ["keys", "export"], ["keys", "import"], ["sessions"], ["sessions", "list"], ["sessions", "close"],
      ["refusals"], ["console"],
    ])
  func help(_ command: [String]) async throws {
    let help = try await sallyport(command + ["--help"])
    #expect(help.status == 0)
    #expect(help.output.contains { $0.hasPrefix("Example") })
    #expect(help.output.contains { $0.contains("sallyport \(command.joined(separator: " "))") })
  }
}

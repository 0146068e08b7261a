import AndroidKeyAttestation
import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateProcesses
import GateService
import Locking
import SQLiteStore
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Risk metrics of a running gate, and in commands", .serialized, .timeLimit(.minutes(5)))
struct RiskTests {
  private static func entry(_ number: Int, _ metric: Int?, isOutdated: Bool = false) throws -> KeyEntry {
    let entry = try Fixture.entry(number)
    let record = entry.record
    return KeyEntry(
      record: KeyRecord(
        key: record.key, request: record.request, registeredAt: record.registeredAt, counter: record.counter,
        lastUsedAt: record.lastUsedAt, revokedAt: record.revokedAt,
        risk: metric.map { StoredRisk(KeyRisk(metric: $0, at: Fixture.now), isOutdated: isOutdated) }),
      usedCounters: entry.usedCounters, receipt: entry.receipt)
  }

  @Test("Keys are listed by metric, and shown with it")
  func commands() async throws {
    let entries = try [
      Self.entry(0, nil), Self.entry(1, 1), Self.entry(2, 3), Self.entry(3, 4), Self.entry(4, 9, isOutdated: true),
    ]
    try await StoreBench.with(entries) { bench in
      func list(_ risk: String) async throws -> Set<String> {
        let listed = try await sallyport(["keys", "list", "--risk", risk, "--store", bench.url])
        #expect(listed.status == 0, "\(listed)")
        return Set(listed.output.map { String($0.prefix(43)) })
      }
      #expect(try await list("3+") == [try Fixture.hash(2), try Fixture.hash(3)])
      #expect(try await list("1-3") == [try Fixture.hash(1), try Fixture.hash(2)])
      #expect(try await list("4") == [try Fixture.hash(3)])
      #expect(try await list("unknown") == [try Fixture.hash(0), try Fixture.hash(4)])
      #expect(try await list("9") == [])
      for text in ["many", "3-", "-3", ""] {
        let refused = try await sallyport(["keys", "list", "--risk=\(text)", "--store", bench.url])
        #expect(refused.status == 64, "\(text): \(refused)")
      }
      let prefix = String(try Fixture.hash(3).prefix(6))
      let byPrefix = ["keys", "list", "--prefix", prefix, "--store", bench.url, "--risk"]
      #expect(try await sallyport(byPrefix + ["4"]).output.count == 1)
      #expect(try await sallyport(byPrefix + ["5+"]).output == [])

      let lines = try await sallyport(["keys", "list", "--store", bench.url]).output
      let risks = Set(lines.map { String($0.split(separator: "\t").last ?? "") })
      #expect(risks == ["-", "1", "3", "4", "9 outdated"])
      let shown = try await sallyport(["keys", "show", try Fixture.hash(4), "--store", bench.url])
      #expect(shown.output.contains("risk            9 outdated"), "\(shown.output)")
      #expect(shown.output.contains("risk at         2027-01-15T08:00:00Z"))
      let json = try await sallyport(["keys", "show", try Fixture.hash(4), "--json", "--store", bench.url])
      let key = try json.json(KeyDescription.self)
      #expect(key.risk == 9 && key.isRiskOutdated == true && key.riskAt == Fixture.now.description)
      let plain = try await sallyport(["keys", "show", try Fixture.hash(0), "--json", "--store", bench.url])
      #expect(plain.output.first?.contains("risk") == false)
    }
  }

  /// The entries of one Android device with three keys, of another with one, and of one with a factory's key.
  private static func androidEntries() throws -> [KeyEntry] {
    try [0, 0, 0, 1, 2].enumerated().map { number, device in
      let entry = try Fixture.androidEntry(number)
      guard case .android(let key) = entry.record.key.attestation else { throw Unexpected("a key of iOS") }
      let attested = AttestedAndroidKey(
        publicKey: key.publicKey, package: key.package, signers: key.signers, securityLevel: key.securityLevel,
        bootState: key.bootState, bootKey: key.bootKey, patchLevel: key.patchLevel,
        provisioning: device == 2 ? .factory : .remote, serialNumbers: [[1], [0x40, UInt8(device)], [9]])
      let record = KeyRecord(
        key: DeviceKey(attested, environment: .production), request: entry.record.request,
        registeredAt: entry.record.registeredAt, counter: .zero, lastUsedAt: nil, revokedAt: nil)
      return KeyEntry(record: record, usedCounters: .max, receipt: [])
    }
  }

  @Test("Keys of Android devices are listed by the number of keys of their device, also in each kind of copy")
  func android() async throws {
    let entries = try Self.androidEntries()
    let hashes = entries.map { KeyHash(of: $0.record.key.keyID).text }
    try await StoreBench.with(entries) { bench in
      func expectNumbers(in url: String) async throws {
        func list(_ risk: String) async throws -> Set<String> {
          let listed = try await sallyport(["keys", "list", "--risk", risk, "--platform", "android", "--store", url])
          #expect(listed.status == 0, "\(listed)")
          return Set(listed.output.map { String($0.prefix(43)) })
        }
        #expect(try await list("2+") == Set(hashes[0...2]))
        #expect(try await list("1") == [hashes[3]])
        #expect(try await list("unknown") == [hashes[4]])
        let shown = try await sallyport(["keys", "show", hashes[0], "--store", url])
        #expect(shown.output.contains("risk            3"), "\(shown.output)")
        #expect(shown.output.contains("risk at         2027-01-15T08:00:00Z"))
        let key = try await sallyport(["keys", "show", hashes[1], "--json", "--store", url]).json(KeyDescription.self)
        #expect(key.risk == 3 && key.isRiskOutdated == nil && key.provisioning == "remote")
      }
      try await expectNumbers(in: bench.url)
      let (backup, export) = (bench.folder + "/backup.db", bench.folder + "/keys.jsonl")
      for (name, commands) in [
        (
          "restored",
          [["store", "backup", backup, "--store", bench.url], ["store", "restore", backup, "--store", "URL"]]
        ),
        (
          "imported",
          [["keys", "export", export, "--store", bench.url], ["keys", "import", export, "--store", "URL"]]
        ),
      ] {
        try FileManager.default.createDirectory(atPath: "\(bench.folder)/\(name)", withIntermediateDirectories: false)
        let url = "sqlite://\(bench.folder)/\(name)/state.db"
        for command in commands {
          let result = try await sallyport(command.map { $0 == "URL" ? url : $0 })
          #expect(result.status == 0, "\(result)")
        }
        try await expectNumbers(in: url)
      }
    }
  }

  @Test("Backup, restore, migration, export and import keep metric and newest receipt")
  func copies() async throws {
    let entries = try [Self.entry(0, nil), Self.entry(1, 6), Self.entry(2, 9, isOutdated: true)]
    try await StoreBench.with(entries) { bench in
      let expected = try await bench.use { try await $0.entries(after: nil, limit: 10) }
      #expect(Set(expected.map(\.record.risk)) == Set(entries.map(\.record.risk)))
      func expectCopy(_ name: String, _ commands: [[String]]) async throws {
        for command in commands {
          let result = try await sallyport(command)
          #expect(result.status == 0, "\(result)")
        }
        let copy = StoreBench(folder: bench.folder + "/" + name)
        #expect(try await copy.use { try await $0.entries(after: nil, limit: 10) } == expected)
        let findings = try await copy.use { try await $0.findings(isThorough: true) }
        #expect(findings.filter { $0.text.contains("receipt") } == [])
      }
      for name in ["restored", "imported"] {
        try FileManager.default.createDirectory(atPath: "\(bench.folder)/\(name)", withIntermediateDirectories: false)
      }
      let backup = bench.folder + "/backup.db"
      try await expectCopy(
        "restored",
        [
          ["store", "backup", backup, "--store", bench.url],
          ["store", "restore", backup, "--store", "sqlite://\(bench.folder)/restored/state.db"],
        ])
      let export = bench.folder + "/keys.jsonl"
      try await expectCopy(
        "imported",
        [
          ["keys", "export", export, "--store", bench.url],
          ["keys", "import", export, "--store", "sqlite://\(bench.folder)/imported/state.db"],
        ])
      let again = try await sallyport(["keys", "import", export, "--store", bench.url, "--json"])
      #expect(again.output == [#"{"new":0,"unchanged":3,"updated":0}"#])
    }
  }

  /// Settles the first exchange of the phone's key in the store of a running gate, as another gate of it would.
  private func settle(
    _ phone: Phone, _ metric: Int?, of bench: AdminBench, by action: RiskPolicy.Action,
    next: Timestamp? = .now().advanced(by: .seconds(3600))
  ) async throws -> [RiskEnforcement.Revocation] {
    let store = SQLiteStore(path: bench.gate.folder.path + "/state.db")
    let app = try #require(AppID(teamID: GatePlan.teamID, bundleID: GatePlan.bundleID))
    let policy = AppPolicy(
      appID: app, environments: [.development], risk: RiskPolicy(threshold: 5, action: action))
    let reports = LockedValue<[RiskEnforcement.Revocation]>([])
    let storage = RiskEnforcement(store, apps: [policy]) { report in reports.withLock { $0.append(report) } }
    // Whatever the gate's own exchanges have stored.
    let late = Timestamp.now().advanced(by: .seconds(100_000_000))
    let due = try await storage.dueReceipts(of: [app], at: late, limit: 10)
    let receipt = try #require(due.first { $0.key.keyID.base64 == phone.keyID })
    let settlement = ReceiptSettlement(risk: metric.map { KeyRisk(metric: $0, at: .now()) }, next: next)
    #expect(try await storage.settle(receipt, as: settlement))
    await store.close()
    return reports.withLock { $0 }
  }

  private static let keyed = "key_file: developer.p8, key_id: AAABBBCCC1, endpoint: \"http://127.0.0.1:1/v1\""

  @Test("A metric above the threshold is refused at the next connection, and an open socket stays")
  func refused() async throws {
    try await AdminBench.serving(risk: "\(Self.keyed), threshold: 5, action: refuse") { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      #expect(try await settle(phone, 6, of: bench, by: .refuse) == [])
      // The gate hears of the change within its interval.
      var (code, counter) = (String?.none, UInt32(2))
      repeat {
        let credentials = try phone.credentials(over: await bench.visitor.challenge(), counter: counter)
        code = try await bench.visitor.refusal(of: credentials)
        counter += 1
        try await Task.sleep(for: .milliseconds(100))
      } while code == nil
      #expect(code == "risk_too_high")
      #expect(try await socket.exchange(.text("still here")) == .text("still here"))
      let key = try await sallyport(["keys", "show", hash, "--json"] + bench.config).json(KeyDescription.self)
      #expect(key.risk == 6 && key.state == "active")
    }
  }

  @Test("With revoke, an exchange above the threshold closes the sockets of the key")
  func revoked() async throws {
    try await AdminBench.serving(risk: "\(Self.keyed), threshold: 5, action: revoke") { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let (other, _) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      let untouched = try await bench.visitor.open(as: other, counter: 1)
      #expect(try await settle(phone, 6, of: bench, by: .revoke).map(\.metric) == [6])
      #expect(try await socket.ending(since: .now).code == 3003)
      #expect(try await untouched.exchange(.text("still here")) == .text("still here"))
      let credentials = try phone.credentials(over: await bench.visitor.challenge(), counter: 2)
      #expect(try await bench.visitor.refusal(of: credentials) == "risk_too_high")
      let key = try await sallyport(["keys", "show", hash, "--json"] + bench.config).json(KeyDescription.self)
      #expect(key.risk == 6 && key.state == "revoked")
      let status = try await sallyport(["status"] + bench.config)
      #expect(status.output.contains { $0.contains("revoke above 5") }, "\(status.output)")
    }
  }

  @Test("Commands and console show the same of each state: never asked, refused, reported, too high, outdated")
  func shown() async throws {
    try await AdminBench.serving(risk: "\(Self.keyed), threshold: 5, action: refuse") { bench in
      var expected: [String: String] = [:]
      for (metric, isSettled, next, text) in [
        (nil, false, nil, "-"), (nil, true, Timestamp.now().advanced(by: .seconds(3600)), "-"),
        (3, true, Timestamp.now().advanced(by: .seconds(3600)), "3"),
        (9, true, Timestamp.now().advanced(by: .seconds(3600)), "9"), (7, true, nil, "7 outdated"),
      ] as [(Int?, Bool, Timestamp?, String)] {
        let (phone, hash) = try await bench.registeredPhone()
        if isSettled { _ = try await settle(phone, metric, of: bench, by: .refuse, next: next) }
        expected[hash] = text
      }
      let lines = try await sallyport(["keys", "list"] + bench.config).output.map {
        $0.split(separator: "\t").map(String.init)
      }
      #expect(Dictionary(uniqueKeysWithValues: lines.map { ($0[0], $0.last ?? "") }) == expected)
      for (filter, texts) in [
        ("unknown", ["-", "-", "7 outdated"]), ("2+", ["3", "9"]), ("5+", ["9"]), ("10+", []),
      ] as [(String, [String])] {
        let lines = try await sallyport(["keys", "list", "--risk", filter] + bench.config).output
        #expect(lines.compactMap { $0.split(separator: "\t").last.map(String.init) }.sorted() == texts, "\(filter)")
      }
      let console = try await ConsoleProcess(bench)
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      for (hash, text) in expected {
        // An outdated metric that looks like a current one would explain no refusal.
        let file = try await console.get("/keys.csv?key=\(hash)", cookie: cookie).text
        let row = try #require(file.split(separator: "\r\n").last).split(
          separator: ",", omittingEmptySubsequences: false)
        #expect(row.count > 5 && row[5] == (text == "-" ? "" : text), "\(row)")
        let page = try await console.get("/keys/\(hash)", cookie: cookie).text
        #expect(page.contains("risk metric") == (text != "-"), "\(text)")
        #expect(page.contains(", outdated") == text.hasSuffix("outdated"), "\(text)")
      }
    }
  }
}

import ByteCoding
import Foundation
import GateProcesses
import Glibc
import PostgresServers
import SimulatedDevice
import TestSupport
import Testing

#if !DEBUG
  /// The figures of the article on risk metrics, of an optimized gate. It prints what it measured. Machines are shared, so a
  /// test allows more processor time than the article says.
  @Suite(
    .serialized,
    .enabled("scripts/test --speed runs it") { ProcessInfo.processInfo.environment["SALLYPORT_TEST_SPEED"] != nil })
  struct SpeedTests {
    private static let countOfKeys = 1_000_000
    /// Keys with genuine receipts, which the gate exchanges. It makes five exchanges a second.
    private static let countOfPhones = 150
    private static let columns = """
      key_id, key_hash, public_key, app_id, environment, category, bundle_version, counter, used_counters,
      registration_nonce, attestation_digest, registered_at
      """

    @Test(
      "With a million due receipts, a gate exchanges them with little memory and processor time",
      arguments: [
        "SQLite", "PostgreSQL",
      ])
    func millionKeys(_ store: String) async throws {
      try await Places.withTemporaryFolder { path in
        let folder = AuthorityFolder(path: path + "/gate")
        _ = try folder.loadOrMake(appID: "\(GatePlan.teamID).\(GatePlan.bundleID)", at: .now())
        let apple = try await DataServiceProcess(folder)
        defer { apple.process.kill() }
        var plan = GatePlan()
        let server = store == "SQLite" ? nil : try await PostgresServer.start(options: ["fsync": "off"])
        plan.storeURL = server.map { PostgresServer.url(of: [$0]) }
        try await Self.register(plan, in: path + "/gate")
        if let server {
          try await Self.fill(server)
        } else {
          let run = try await ChildProcess.run(
            "/usr/bin/python3", ["-c", Self.sqliteRows, path + "/gate/state.db"], within: .seconds(900))
          #expect(run.exit == .code(0), "\(run.errors)")
        }

        // The same gate without exchanges.
        var figures: [Figures] = []
        for isOn in [false, true] {
          plan.risk = isOn ? apple.risk("") : nil
          let gate = try await GateProcess(plan, in: path + "/gate")
          defer { gate.process.kill() }
          try await Self.awaitCount(gate)
          let (start, begun) = (try Figures(of: gate), apple.statuses.count)
          let instant = ContinuousClock.now
          try await Task.sleep(for: .seconds(20))
          let end = try Figures(of: gate)
          let seconds = (ContinuousClock.now - instant) / .seconds(1)
          figures.append(
            Figures(
              processorTime: (end.processorTime - start.processorTime) / seconds, memory: end.memory,
              exchanges: Double(apple.statuses.count - begun) / seconds))
        }
        let rate = figures[1].exchanges
        let each = (figures[1].processorTime - figures[0].processorTime) / rate
        let memory = figures[1].memory - figures[0].memory
        print(
          "ExchangeSpeedTests: \(store), \(Self.countOfKeys) keys: \(rate) exchanges a second, \(each * 1000) ms of "
            + "processor time each (\(each * 1000) % of a core at ten a second), \(Double(memory) / 1e6) MB of memory")
        #expect(rate > 2 && apple.statuses.allSatisfy { $0 == 200 })
        #expect(memory < 20 << 20)
        #expect(each < 0.01)
      }
    }

    /// Waits until the gate has counted all keys by their metric. It does that at its start, and later in at most a
    /// hundredth of the time.
    private static func awaitCount(_ gate: GateProcess) async throws {
      for _ in 0..<60 {
        let used = try Figures(of: gate).processorTime
        try await Task.sleep(for: .seconds(3))
        if try Figures(of: gate).processorTime - used < 0.3 { return }
      }
      throw Unexpected("the gate does not become calm")
    }

    /// Registers the phones at a gate without exchanges.
    private static func register(_ plan: GatePlan, in path: String) async throws {
      let gate = try await GateProcess(plan, in: path)
      defer { gate.process.kill() }
      let visitor = try Visitor(to: gate)
      for _ in 0..<countOfPhones { try await visitor.register(Phone(of: gate.authority)) }
      try await gate.crash()
    }

    /// Inserts keys that were registered before the phones. Their receipts are no receipts: a worker that reads one settles
    /// it without a request.
    private static func fill(_ server: PostgresServer) async throws {
      let portion = countOfKeys / 10
      for first in stride(from: 0, to: countOfKeys, by: portion) {
        try await server.sql(
          """
          INSERT INTO attested_keys (\(columns))
          SELECT sha256(n::text::bytea), left(encode(sha256(n::text::bytea), 'hex'), 43), sha512(n::text::bytea) || 'x',
            '\(GatePlan.teamID).\(GatePlan.bundleID)', 'development', 4, '42', 0, -1, sha256(('a' || n)::bytea),
            sha256(('b' || n)::bytea), 1750000000000 + n
          FROM generate_series(\(first), \(first + portion - 1)) AS n;
          INSERT INTO receipts SELECT key_id, public_key FROM attested_keys
          WHERE registered_at BETWEEN 1750000000000 + \(first) AND 1750000000000 + \(first + portion - 1)
          """)
      }
      try await server.sql("VACUUM ANALYZE")
    }

    private static let sqliteRows = """
      import hashlib, os, sqlite3, sys
      db = sqlite3.connect(sys.argv[1])
      db.execute("PRAGMA synchronous = OFF")
      def rows():
          for n in range(\(countOfKeys)):
              key = hashlib.sha256(b"%d" % n).digest()
              more = os.urandom(129)
              yield (key, key.hex()[:43], more[:65], "\(GatePlan.teamID).\(GatePlan.bundleID)", "development", 4, "42", 0,
                     -1, more[65:97], more[97:], 1750000000000 + n)
      db.executemany('''INSERT INTO attested_keys (\(columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)''', rows())
      db.execute("INSERT INTO receipts SELECT key_id, public_key FROM attested_keys WHERE bundle_version = '42'")
      db.commit()
      db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
      """

    /// What a process has used, or uses in a second.
    private struct Figures {
      var processorTime: Double
      /// The most resident memory so far, in bytes.
      var memory: Int
      var exchanges = 0.0

      init(processorTime: Double, memory: Int, exchanges: Double) {
        (self.processorTime, self.memory, self.exchanges) = (processorTime, memory, exchanges)
      }

      init(of gate: GateProcess) throws {
        let place = "/proc/\(gate.process.id)"
        let status = try String(contentsOfFile: place + "/status", encoding: .utf8)
        let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let stat = try String(contentsOfFile: place + "/stat", encoding: .utf8)
        // The first field after the name is the third.
        let fields = (stat.split(separator: ")").last ?? "").split(separator: " ")
        guard let kibibytes = peak?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }), fields.count > 13,
          let user = Double(fields[11]), let system = Double(fields[12])
        else { throw Unexpected("no figures of \(place)") }
        memory = kibibytes << 10
        processorTime = (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
      }
    }
  }
#endif

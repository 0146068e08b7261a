import ByteCoding
import Foundation
import Glibc
import MFADelivery
import MFADomain
import MFAFixtures
import MFAStore
import TestSupport
import Testing

@Suite("Exports of the history", .serialized, .timeLimit(.minutes(2)))
struct AuditExportTests {
  /// Appends entries with the next numbers.
  ///
  /// - Parameter salt: entries of another history have another one, and so other hashes.
  private func append(
    _ count: Int, to store: any Store, event: String = "code.refused", account: String? = "ada",
    detail: String = "a=b", salt: Int64 = 0
  ) async throws {
    try await store.write { records in
      for _ in 0..<count {
        let last = try records.lastAuditEntry()
        let entry = AuditEntry(
          sequence: (last?.sequence ?? 0) + 1, at: Timestamp(milliseconds: 1_767_225_600_123), requestID: "r",
          actor: "key", account: account, event: event, detail: detail, previous: last?.hash ?? AuditEntry.origin,
          keyNumber: 1)
        try records.append(entry, hash: hash(entry.sequence + salt))
      }
    }
  }

  private func hash(_ number: Int64) -> [UInt8] { [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 32) }

  private static let schedule: AuditExporter.Schedule = {
    var schedule = AuditExporter.Schedule()
    (schedule.interval, schedule.pause) = (.milliseconds(5), .milliseconds(20))
    return schedule
  }()

  /// Calls `body` with an exporter that runs meanwhile.
  private func exporting(
    _ store: any Store, _ settings: AuditExporter.Settings, log: CapturedLog = CapturedLog(),
    schedule: AuditExporter.Schedule = schedule, _ body: (AuditExporter) async throws -> Void
  ) async throws {
    let exporter = AuditExporter(AuditExports(store), schedule: schedule, logger: log.logger)
    exporter.apply(settings)
    let running = Task { try await exporter.run() }
    let result: Result<Void, any Error>
    do { result = .success(try await body(exporter)) } catch { result = .failure(error) }
    running.cancel()
    _ = try? await running.value
    try result.get()
  }

  private func lines(_ path: String) -> [String] {
    ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
  }

  /// Waits until the file has a line with `text`.
  private func line(with text: String, in path: String) async throws -> String {
    while true {
      if let line = lines(path).last(where: { $0.contains(text) }) { return line }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private func sequences(_ path: String) throws -> [Int] {
    try lines(path).map { try JSONValue(Data($0.utf8))["sequence"]?.int ?? -1 }
  }

  @Test("a file gets each entry once, as the command exports it, also across restarts, a cut line and a moved file")
  func file() async throws {
    try await Places.withTemporaryFolder { folder in
      let store = try SQLiteMFAStore.ephemeral()
      let path = folder + "/audit.jsonl"
      try await append(3, to: store)
      try await exporting(store, .init(file: path)) { exporter in
        // A new export begins with the next entry.
        while !FileManager.default.fileExists(atPath: path + ".position") {
          try await Task.sleep(for: .milliseconds(5))
        }
        try await append(2, to: store, detail: "x=\"\n")
        let line = try await line(with: "\"sequence\":5", in: path)
        #expect(
          line.contains(#""event":"code.refused""#) && line.contains(#""hash":"0505"#) && line.contains(#""key":"1""#))
        // Another program rotates the file, and a reload opens it again.
        try FileManager.default.moveItem(atPath: path, toPath: path + "-monday")
        try await append(1, to: store)
        _ = try await self.line(with: "\"sequence\":6", in: path + "-monday")
        exporter.apply(.init(file: path))
        try await append(1, to: store)
        _ = try await self.line(with: "\"sequence\":7", in: path)
      }
      let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      try await append(1, to: store)
      let handle = try #require(FileHandle(forWritingAtPath: path))
      try handle.seekToEnd()
      try handle.write(contentsOf: Data(#"{"sequence":8,"cut"#.utf8))
      try handle.close()
      try await exporting(store, .init(file: path)) { _ in
        try await append(1, to: store)
        _ = try await line(with: "\"sequence\":9,", in: path)
      }
      #expect(try sequences(path + "-monday") == [4, 5, 6])
      #expect(lines(path).filter { $0.hasSuffix("}") }.map { $0.prefix(13) } == (7...9).map { "{\"sequence\":\($0)" })
    }
  }

  @Test("a file is renamed at its size, and the given number of files is kept")
  func rotation() async throws {
    try await Places.withTemporaryFolder { folder in
      let store = try SQLiteMFAStore.ephemeral()
      let path = folder + "/audit.jsonl"
      try await append(1, to: store)
      try Data("1 \(Hex.encode(hash(1)))\n".utf8).write(to: URL(filePath: path + ".position"))
      try await exporting(store, .init(file: path, largestFile: 700, keptFiles: 2)) { _ in
        for number in 2...9 {
          try await append(1, to: store)
          _ = try await line(with: "\"sequence\":\(number),", in: path)
        }
      }
      #expect(try sequences(path) == [8, 9])
      #expect(try sequences(path + ".1") == [6, 7])
      #expect(try sequences(path + ".2") == [4, 5])
      #expect(!FileManager.default.fileExists(atPath: path + ".3"))
    }
  }

  @Test(
    "rsyslog takes the messages by each transport, also those from before it was started, and none twice",
    .enabled(if: FileManager.default.fileExists(atPath: "/usr/sbin/rsyslogd"), "rsyslog is missing"))
  func syslog() async throws {
    try await Places.withTemporaryFolder { folder in
      let made = try await ChildProcess.run(
        Places.tool("openssl"),
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
          "/CN=logs.test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder + "/key.pem", "-out",
          folder + "/cert.pem",
        ])
      #expect(made.exit == .code(0))
      let (udp, tcp, tls) = (Int(try Places.freePort()), Int(try Places.freePort()), Int(try Places.freePort()))
      try """
      global(workDirectory="\(folder)" maxMessageSize="16k" defaultNetstreamDriver="ossl"
        defaultNetstreamDriverCAFile="\(folder)/cert.pem" defaultNetstreamDriverCertFile="\(folder)/cert.pem"
        defaultNetstreamDriverKeyFile="\(folder)/key.pem")
      module(load="imudp") module(load="imptcp") module(load="imuxsock" SysSock.Use="off")
      module(load="imtcp" StreamDriver.Name="ossl" StreamDriver.Mode="1" StreamDriver.AuthMode="anon")
      template(name="seen" type="string" string="%inputname% %pri% %app-name% %msgid% %structured-data%%msg%\\n")
      ruleset(name="out") { action(type="omfile" file="\(folder)/out" template="seen") }
      input(type="imudp" address="127.0.0.1" port="\(udp)" ruleset="out")
      input(type="imptcp" address="127.0.0.1" port="\(tcp)" ruleset="out")
      input(type="imtcp" address="127.0.0.1" port="\(tls)" ruleset="out")
      input(type="imuxsock" socket="\(folder)/log" useSpecialParser="off" ruleset="out")

      """.write(toFile: folder + "/rsyslog.conf", atomically: true, encoding: .utf8)
      let store = try SQLiteMFAStore.ephemeral()
      let (log, out) = (CapturedLog(), folder + "/out")
      try await append(1, to: store)
      // The export has been before; entry 1 is the last one that went out.
      let before = AuditExports(store)
      #expect(try await before.next(of: "syslog")?.entries.isEmpty == true)
      try await before.release("syslog")
      try await append(1, to: store, account: "a\"]\\\n\u{E9}", detail: "reason=code_wrong")
      try await exporting(store, .init(syslog: .tcp(host: "127.0.0.1", port: tcp)), log: log) { exporter in
        try await log.line(saying: "audit export failed")
        let server = try ChildProcess(
          "/usr/sbin/rsyslogd", ["-n", "-f", folder + "/rsyslog.conf", "-i", folder + "/pid"])
        defer { server.kill() }
        let first = try await line(with: "sequence=\"2\"", in: out)
        let hash = String(repeating: "02", count: 32)
        #expect(
          first
            == "imptcp 84 mfa-backend audit [audit@32473 sequence=\"2\" event=\"code.refused\" "
            + "account=\"a\\\"\\]\\\\ \u{E9}\" actor=\"key\" requestId=\"r\" hash=\"\(hash)\"]"
            + "code.refused reason=code_wrong")
        try await log.line(saying: "audit export resumed")
        let targets: [(String, SyslogTarget)] = [
          ("imudp", .udp(host: "127.0.0.1", port: udp)), ("imuxsock", .local(path: folder + "/log")),
          ("imtcp", .tls(host: "127.0.0.1", port: tls, authority: folder + "/cert.pem")),
        ]
        for (index, (name, target)) in targets.enumerated() {
          exporter.apply(.init(syslog: target, facility: "local7"))
          try await append(1, to: store, event: "code.accepted", detail: "")
          let line = try await line(with: "sequence=\"\(index + 3)\"", in: out)
          #expect(line.hasPrefix("\(name) 190 mfa-backend audit [") && line.hasSuffix("]code.accepted"), "\(line)")
        }
        // A certificate that is not trusted gets nothing.
        exporter.apply(.init(syslog: .tls(host: "127.0.0.1", port: tls, authority: nil)))
        try await append(1, to: store, event: "code.accepted")
        try await log.lines(2, saying: "audit export failed")
        exporter.apply(.init(syslog: .tcp(host: "127.0.0.1", port: tcp)))
        _ = try await self.line(with: "sequence=\"6\"", in: out)
      }
      #expect(lines(out).count == 5, "\(lines(out))")
    }
  }

  /// A listening socket. The system completes connections and takes bytes; a close resets what was not read.
  private struct Listener {
    private let descriptor: Int32

    /// - Parameter buffer: the size of the receive buffer in bytes.
    init(port: Int, buffer: CInt) throws {
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      var (size, yes) = (buffer, 1 as CInt)
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4)
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(port).bigEndian
      address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
      let isBound = withUnsafeBytes(of: &address) {
        bind(descriptor, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
      }
      try #require(isBound && listen(descriptor, 16) == 0)
    }

    func end() { close(descriptor) }

    /// Waits for a connection, which it does not accept.
    func connection() async throws {
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      while poll(&wait, 1, 0) == 0 { try await Task.sleep(for: .milliseconds(5)) }
    }

    /// Accepts a connection, and reads until `last` has come.
    func text(until last: String) async throws -> String {
      func ready(_ descriptor: Int32) async throws {
        var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&wait, 1, 0) == 0 { try await Task.sleep(for: .milliseconds(5)) }
      }
      try await ready(descriptor)
      let connection = accept(descriptor, nil, nil)
      defer { close(connection) }
      var (bytes, part) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
      while !String(decoding: bytes, as: UTF8.self).contains(last) {
        try await ready(connection)
        let count = read(connection, &part, part.count)
        try #require(count > 0)
        bytes += part.prefix(count)
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  @Test("by TCP, an entry is exported when it is acknowledged, and comes again if a killed receiver has not read it")
  func unreadMessages() async throws {
    let (store, log, port) = (try SQLiteMFAStore.ephemeral(), CapturedLog(), Int(try Places.freePort()))
    func position() async throws -> Int64? { try await store.read { try $0.auditExport("syslog")?.position.sequence } }
    var schedule = Self.schedule
    schedule.patience = .milliseconds(200)
    try await append(1, to: store)
    let before = AuditExports(store)
    #expect(try await before.next(of: "syslog")?.entries.isEmpty == true)
    try await before.release("syslog")
    // More than the receiver's buffer has room for; this machine's buffer takes it.
    try await append(60, to: store, detail: String(repeating: "x", count: 500))
    let full = try Listener(port: port, buffer: 2048)
    let target = SyslogTarget.tcp(host: "127.0.0.1", port: port)
    try await exporting(store, .init(syslog: target), log: log, schedule: schedule) { _ in
      try await log.line(saying: "audit export failed")
      #expect(try await position() == 1)
      full.end()
      // The receiver's system takes all, and the receiver reads nothing.
      let deaf = try Listener(port: port, buffer: 1 << 17)
      while try await position() != 61 { try await Task.sleep(for: .milliseconds(5)) }
      deaf.end()
      let reader = try Listener(port: port, buffer: 1 << 17)
      defer { reader.end() }
      try await append(1, to: store)
      let text = try await reader.text(until: "sequence=\"62\"")
      #expect((2...62).filter { !text.contains("sequence=\"\($0)\"") } == [])
    }
  }

  @Test("messages that are under way at the end of the process are no failure of the receiver")
  func shutdown() async throws {
    let (store, log, port) = (try SQLiteMFAStore.ephemeral(), CapturedLog(), Int(try Places.freePort()))
    try await append(1, to: store)
    let before = AuditExports(store)
    #expect(try await before.next(of: "syslog")?.entries.isEmpty == true)
    try await before.release("syslog")
    // More than the receiver's buffer has room for, so that it does not acknowledge all.
    try await append(60, to: store, detail: String(repeating: "x", count: 500))
    let full = try Listener(port: port, buffer: 2048)
    defer { full.end() }
    let target = SyslogTarget.tcp(host: "127.0.0.1", port: port)
    try await exporting(store, .init(syslog: target), log: log) { _ in try await full.connection() }
    #expect(log.lines(saying: "audit export failed") == 0)
  }

  @Test("of two backends one sends at a time; the other continues after the first has gone")
  func lease() async throws {
    let store = try SQLiteMFAStore.ephemeral()
    let clock = ManualClock()
    let (first, second) = (AuditExports(store, clock: clock.wall), AuditExports(store, clock: clock.wall))
    try await append(2, to: store)
    #expect(try await first.next(of: "syslog")?.entries.isEmpty == true)
    try await append(2, to: store)
    #expect(try await second.next(of: "syslog") == nil)
    let all = try #require(try await first.next(of: "syslog")?.entries)
    #expect(all.map(\.entry.sequence) == [3, 4])
    try await first.advance("syslog", to: all[0])
    clock.advance(by: .seconds(31))
    #expect(try await second.next(of: "syslog")?.entries.map(\.entry.sequence) == [4])
    // The first one was only slow: what it sends now does not move the position of the other.
    try await first.advance("syslog", to: all[1])
    #expect(try await first.next(of: "syslog") == nil)
    #expect(try await second.next(of: "syslog")?.entries.map(\.entry.sequence) == [4])
    try await second.advance("syslog", to: all[1])
    try await second.release("syslog")
    try await append(1, to: store)
    let next = try await first.next(of: "syslog")
    #expect(next?.entries.map(\.entry.sequence) == [5] && next?.lost == nil)
  }

  @Test("an export goes on at once after a backend with a clock that ran ahead stopped without a word")
  func leaseAhead() async throws {
    let store = try SQLiteMFAStore.ephemeral()
    let (ahead, clock) = (ManualClock(), ManualClock())
    let (first, second) = (AuditExports(store, clock: ahead.wall), AuditExports(store, clock: clock.wall))
    try await append(1, to: store)
    ahead.advance(by: .seconds(60))
    #expect(try await first.next(of: "syslog")?.entries.isEmpty == true)
    try await append(1, to: store)
    #expect(try await first.next(of: "syslog")?.entries.map(\.entry.sequence) == [2])
    // The clocks of two backends may differ by a minute.
    #expect(try await second.next(of: "syslog") == nil)
    ahead.advance(by: .seconds(86400))
    #expect(try await first.next(of: "syslog")?.entries.map(\.entry.sequence) == [2])
    #expect(try await second.next(of: "syslog")?.entries.map(\.entry.sequence) == [2])
  }

  @Test("a history with another end is reported, and exported from its end or from the same number on")
  func changedHistory() async throws {
    let exported = AuditPosition(sequence: 5, hash: hash(5))
    for (count, expected) in [(3, []), (5, []), (7, [6, 7])] as [(Int, [Int64])] {
      let store = try SQLiteMFAStore.ephemeral()
      try await append(2, to: store)
      try await append(count - 2, to: store, salt: 100)
      try await store.write {
        try $0.save(
          AuditExport(name: "syslog", position: exported, holder: UUID(), heldUntil: Timestamp(milliseconds: 0)))
      }
      let batch = try await AuditExports(store).next(of: "syslog")
      #expect(batch?.lost == exported && batch?.entries.map(\.entry.sequence) == expected)
    }
  }

  @Test("after a restore, a file gets all entries that are new, whether their numbers are known to it or not")
  func restoredHistory() async throws {
    try await Places.withTemporaryFolder { folder in
      let (path, log) = (folder + "/audit.jsonl", CapturedLog())
      func store(_ common: Int, _ new: Int, salt: Int64) async throws -> any Store {
        let store = try SQLiteMFAStore.ephemeral()
        try await append(common, to: store)
        try await append(new, to: store, salt: salt)
        return store
      }
      func exporting(_ store: any Store, until number: Int64) async throws {
        try await self.exporting(store, .init(file: path), log: log) { _ in
          _ = try await line(with: Hex.encode(hash(number)), in: path)
        }
      }
      try Data("2 \(Hex.encode(hash(2)))\n".utf8).write(to: URL(filePath: path + ".position"))
      try await exporting(store(5, 0, salt: 0), until: 5)
      // The file shows where the two histories part.
      try await exporting(store(3, 3, salt: 40), until: 46)
      #expect(try sequences(path) == [3, 4, 5, 4, 5, 6])
      #expect(log.lines(saying: "audit export begins again") == 1)
      // An end before the last line, and an entry that comes later.
      let short = try await store(4, 0, salt: 0)
      try await self.exporting(short, .init(file: path), log: log) { _ in
        try await log.lines(2, saying: "audit export begins again")
        try await append(1, to: short, salt: 80)
        _ = try await line(with: Hex.encode(hash(85)), in: path)
      }
      #expect(try sequences(path) == [3, 4, 5, 4, 5, 6, 5])
      // The file was moved away: the restore has stored the place.
      try FileManager.default.removeItem(atPath: path)
      let moved = try await store(2, 4, salt: 120)
      try await moved.write { [position = AuditPosition(sequence: 2, hash: hash(2))] in
        try $0.save(
          AuditExport(
            name: AuditExport.restored, position: position, holder: UUID(), heldUntil: Timestamp(milliseconds: 0)))
      }
      try await exporting(moved, until: 126)
      #expect(try sequences(path) == [3, 4, 5, 6])
    }
  }

  // MARK: Webhooks

  /// A receiver that verifies each message by the reference library of Standard Webhooks.
  private static let packages = PythonPackages(
    name: "mfa-webhooks-python", packages: ["standardwebhooks==1.1.0"], modules: "import standardwebhooks.webhooks")

  private struct Received: Decodable {
    struct Message: Decodable {
      let type: String
      let data: [String: JSONScalar]
    }
    let id: String
    let status: Int
    let message: Message
  }

  @Test(
    "Webhooks arrive signed and in order; one that is refused ten times is given up, and the events are chosen",
    .enabled("standardwebhooks cannot be installed: it needs python3-venv and PyPI") { await packages.arePresent() })
  func webhooks() async throws {
    try await Places.withTemporaryFolder { folder in
      let secret = "whsec_" + Base64.encode(Array(0..<32))
      try "\(secret)\n".write(toFile: folder + "/secret", atomically: true, encoding: .utf8)
      let answers = "503 " + Array(repeating: "400", count: 10).joined(separator: " ")
      let receiver = try ChildProcess(
        Self.packages.python, [ProjectFile.path("Tests/Gate/Programs/webhook_receiver.py"), secret],
        environment: ["RECEIVER_ANSWERS": answers])
      defer { receiver.kill() }
      let line = try await receiver.output.first("the port") { $0.contains("port") }
      let port = try #require(JSONDecoder().decode([String: Int].self, from: Data(line.utf8))["port"])
      let store = try SQLiteMFAStore.ephemeral()
      try await append(1, to: store)
      let settings = AuditExporter.Settings(
        webhook: WebhookTarget(
          url: "http://127.0.0.1:\(port)/hook", secretFile: folder + "/secret",
          events: ["code.refused", "device.enrolled"]))
      try await exporting(store, settings) { _ in
        // A new export begins with the next entry.
        while try await store.read({ try $0.auditExport("webhook") }) == nil, !Task.isCancelled { await Task.yield() }
        try await append(1, to: store, account: "bob")
        try await append(1, to: store, event: "login.succeeded")
        try await append(1, to: store, event: "device.enrolled", account: nil)
        let lines = try await receiver.output.first(12, "messages", within: .seconds(30)) { $0.contains("\"id\"") }
        let received = try lines.map { try JSONDecoder().decode(Received.self, from: Data($0.utf8)) }
        #expect(received.map(\.status) == [503] + Array(repeating: 400, count: 10) + [204])
        #expect(Set(received.prefix(11).map(\.id)).count == 1 && received[11].id != received[0].id)
        #expect(received[0].message.type == "code.refused" && received[0].message.data["account"] == .text("bob"))
        #expect(received[11].message.type == "device.enrolled" && received[11].message.data["sequence"] == .number(4))
      }
    }
  }
}

import AndroidKeyAttestation
import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GRDB
import GateFixtures
import Locking
import Logging
import Observability
@testable import GateRuntime
import SQLiteStore
import Settings
import SimulatedDevice
import StoreConformance
import TestSupport
import Testing

@Suite("The list of revoked Android certificates", .timeLimit(.minutes(1)))
struct StatusListTests {
  private let folder: TemporaryFolder
  private let store: SQLiteStore
  private let revoked = RevokedCertificates(maximumAge: .seconds(3600))
  private let registry = MetricsRegistry()
  private let metrics: AndroidMetrics
  private let file: String

  init() async throws {
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"))
    file = folder.file("list.json")
    metrics = AndroidMetrics(registry: registry, revoked: revoked)
    try await store.open()
  }

  private func refresh(
    _ place: GateSettings.StatusList.Place? = nil, cache: StatusListCache? = nil, logger: Logger = Logger(label: "test")
  ) -> StatusListRefresh {
    StatusListRefresh(
      source: StatusListSource(place ?? .file(path: file)), refreshInterval: .milliseconds(50), revoked: revoked,
      store: store, cache: cache,
      metrics: metrics, logger: logger)
  }

  private func write(_ serials: [[UInt8]], at path: String? = nil) throws {
    let entries = serials.map {
      "\"\(AndroidStatusList.text(ofSerial: $0))\":{\"status\":\"REVOKED\",\"reason\":\"KEY_COMPROMISE\"}"
    }
    try "{\"entries\":{\(entries.joined(separator: ","))}}".write(
      toFile: path ?? file, atomically: true, encoding: .utf8)
  }

  private func registered() async throws -> (key: DeviceKey, serial: [UInt8]) {
    let key = Fixture.androidKey()
    _ = try await store.register(Fixture.registration(of: key))
    guard case .android(let attested) = key.attestation, let serial = attested.serialNumbers.last else {
      throw FixtureError.unexpected
    }
    return (key, serial)
  }

  /// Waits until `condition` holds.
  private func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
    for _ in 0..<200 {
      if try await condition() { return true }
      try await Task.sleep(for: .milliseconds(50))
    }
    return false
  }

  @Test("A key with a certificate that enters the list is revoked at the next refresh, and no other key is")
  func revocation() async throws {
    let (key, serial) = try await registered()
    let (other, _) = try await registered()
    let ios = Fixture.key()
    _ = try await store.register(Fixture.registration(of: ios))
    try write([[0x77]])
    let refresh = refresh()
    let task = Task { await refresh.run() }
    defer { task.cancel() }
    #expect(try await eventually { revoked.current != nil })
    #expect(try await store.record(of: key.keyID)?.revokedAt == nil)
    // The change has another time than the file before.
    try await Task.sleep(for: .seconds(1))
    try write([[0x77], serial])
    #expect(try await eventually { try await store.record(of: key.keyID)?.revokedAt != nil })
    for id in [other.keyID, ios.keyID] { #expect(try await store.record(of: id)?.revokedAt == nil) }
  }

  @Test("A key whose row is damaged is logged once and counted, and the other keys are compared with the list")
  func damagedRow() async throws {
    var keys: [(key: DeviceKey, serial: [UInt8])] = []
    for _ in 0..<3 { keys.append(try await registered()) }
    keys.sort { $0.key.keyID.bytes.lexicographicallyPrecedes($1.key.keyID.bytes) }
    // The first one in the order of the comparison.
    let database = try DatabaseQueue(path: store.path)
    try await database.write { [id = Data(keys[0].key.keyID.bytes)] in
      try $0.execute(sql: "UPDATE attested_keys SET android = 'level=tee' WHERE key_id = ?", arguments: [id])
    }
    try write(keys.map { $0.serial })
    let lines = LockedValue<[String]>([])
    let refresh = refresh(logger: Logger(label: "test") { _ in LineCollector(lines) })
    let task = Task { await refresh.run() }
    defer { task.cancel() }
    for (key, _) in keys.dropFirst() {
      #expect(try await eventually { try await store.record(of: key.keyID)?.revokedAt != nil })
    }
    func exposition() async -> String { String(decoding: await registry.exposition(), as: UTF8.self) }
    #expect(try await eventually { await exposition().contains("sallyport_android_keys_unreadable 1") })
    // Several comparisons later.
    try await Task.sleep(for: .milliseconds(300))
    let damaged = lines.withLock { $0 }.filter { $0.contains("key not compared with the status list") }
    #expect(damaged.count == 1 && damaged[0].contains("attested_keys.android is malformed"), "\(damaged)")
    #expect(await exposition().contains("sallyport_android_status_list_failures_total 0"))
  }

  @Test(
    "A list that is missing, empty or truncated does not replace the last one",
    arguments: ["", "{\"entr", "{\"entries\":{}}", nil])
  func damaged(content: String?) async throws {
    try write([[0x77], [0x78]])
    let refresh = refresh()
    await refresh.prepare()
    #expect(revoked.current?.list.count == 2)
    if let content {
      try content.write(toFile: file, atomically: true, encoding: .utf8)
    } else {
      try FileManager.default.removeItem(atPath: file)
    }
    await refresh.prepare()
    #expect(revoked.current?.list.count == 2)
  }

  @Test("A file from the future is as current as now, and a later list replaces it")
  func future() async throws {
    try write([[0x77]])
    let change = Date(timeIntervalSinceNow: 1e9)
    try FileManager.default.setAttributes([.modificationDate: change], ofItemAtPath: file)
    await refresh().prepare()
    #expect(try #require(revoked.current?.currentAt) <= .now())
    try write([[0x77], [0x78]])
    await refresh().prepare()
    #expect(revoked.current?.list.count == 2)
  }

  @Test("A file is as current as its last change")
  func fileAge() async throws {
    try write([[0x77]])
    let change = Date(timeIntervalSince1970: 1_700_000_000)
    try FileManager.default.setAttributes([.modificationDate: change], ofItemAtPath: file)
    await refresh().prepare()
    #expect(revoked.current?.currentAt == Timestamp(seconds: 1_700_000_000))
  }

  @Test("A downloaded list is kept for the next start, with the time of its download")
  func cache() async throws {
    let place = folder.file("android-status-list")
    let url = "https://127.0.0.1:1/status"
    let cache = StatusListCache(place: .file(path: place), url: url)
    #expect(try await cache.read()?.list.count == nil)
    try write([[0x77]])
    let content = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
    let instant = Timestamp(seconds: 1_700_000_000)
    try await cache.write(content, of: instant)
    // The server cannot be reached, and is not asked either.
    await refresh(.url("https://127.0.0.1:1/status", caFile: nil), cache: cache).prepare()
    #expect(revoked.current?.currentAt == instant && revoked.current?.list.count == 1)
    #expect(try await StatusListCache(place: .file(path: place), url: url + "2").read()?.list.count == nil)
    try "no time\n{}".write(toFile: place, atomically: true, encoding: .utf8)
    await #expect(throws: StatusListFailure.self) { try await cache.read() }
  }

  /// An HTTPS server that serves the files of the folder, with the certificate of a development authority.
  private static let server = """
    import http.server, ssl, sys
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()
    """

  @Test("A list is downloaded and stored; an answer that is no list, and one of an unknown authority, change nothing")
  func download() async throws {
    let authority = AuthorityFolder(path: folder.file("authority"))
    _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
    let process = try ChildProcess(
      Places.tool("python3"), ["-c", Self.server, authority.serverCertificatePath, authority.serverKeyPath],
      in: folder.path)
    defer { process.kill() }
    let port = try await process.output.first("the port") { !$0.isEmpty }
    func place(_ name: String, trusting file: String?) -> GateSettings.StatusList.Place {
      .url("https://localhost:\(port)/\(name)", caFile: file)
    }
    let (key, serial) = try await registered()
    try write([serial])
    let url = "https://localhost:\(port)/list.json"
    let cache = StatusListCache(place: .file(path: folder.file("cache")), url: url)
    let refresh = refresh(place("list.json", trusting: authority.tlsAuthorityPath), cache: cache)
    let task = Task { await refresh.run() }
    #expect(try await eventually { try await store.record(of: key.keyID)?.revokedAt != nil })
    #expect(try await eventually { (try? await cache.read())?.list.count == 1 })
    task.cancel()
    await task.value
    // White space at the end makes a list of any size.
    let list = try Data(contentsOf: URL(fileURLWithPath: file))
    func pad(_ name: String, size: Int) throws {
      try (list + Data(repeating: 0x20, count: size - list.count)).write(to: URL(fileURLWithPath: folder.file(name)))
    }
    try pad("large.json", size: 3 << 20)
    try pad("too-large.json", size: AndroidStatusList.maximumSize + 1)
    let large = try await StatusListSource(place("large.json", trusting: authority.tlsAuthorityPath)).read()
    #expect(large.list.list.count == 1 && large.download?.count == 3 << 20)
    for name in ["missing.json", "cache", "too-large.json"] {
      await #expect(throws: StatusListFailure.self) {
        _ = try await StatusListSource(place(name, trusting: authority.tlsAuthorityPath)).read()
      }
    }
    // The system's CAs do not know the development authority.
    await #expect(throws: StatusListFailure.self) {
      _ = try await StatusListSource(place("list.json", trusting: nil)).read()
    }
    #expect(revoked.current?.list.count == 1)
  }

  @Test("A server that cannot be reached is a counted failure, the kept list stays, and no log line has the URL's key")
  func unreachable() async throws {
    try write([[0x77]])
    await refresh().prepare()
    let lines = LockedValue<[String]>([])
    let refresh = refresh(
      .url("https://127.0.0.1:1/status?key=s3cret", caFile: nil),
      logger: Logger(label: "test") { _ in LineCollector(lines) })
    let task = Task { await refresh.run() }
    defer { task.cancel() }
    let name = "sallyport_android_status_list_failures_total"
    #expect(try await eventually { String(decoding: await registry.exposition(), as: UTF8.self).contains("\(name) 1") })
    #expect(try await eventually { lines.withLock { $0.contains { $0.contains("https://127.0.0.1:1/status?***") } } })
    #expect(lines.withLock { $0.allSatisfy { !$0.contains("s3cret") } })
    #expect(revoked.current?.list.count == 1)
  }
}

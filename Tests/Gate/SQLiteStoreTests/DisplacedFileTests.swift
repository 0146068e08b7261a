import AttestGate
import Foundation
import GRDB
import GateFixtures
import StoreConformance
import Testing

@testable import SQLiteStore

@Suite("Deleted and replaced files of an open SQLite store")
struct DisplacedFileTests {
  private let folder: TemporaryFolder
  private let store: SQLiteStore

  init() throws {
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"))
  }

  private func expectRefusal() async throws {
    let known = Fixture.registration()
    for call in ["write", "read"] {
      do throws(StoreError) {
        if call == "write" { _ = try await store.register(known) } else { _ = try await store.count() }
        Issue.record("\(call) accepted")
      } catch {
        guard case .unreachable(let reason) = error else {
          Issue.record("\(error)")
          return
        }
        #expect(
          reason.hasPrefix("\(store.path) was deleted or replaced") || reason.contains("-wal was deleted")
            || reason.contains("-shm was deleted"))
      }
    }
    guard case .failing = store.health else {
      Issue.record("healthy: \(store.health)")
      return
    }
  }

  @Test(
    "A store without its files refuses every call, and works again when the files are restored",
    arguments: ["", "-wal", "-shm"])
  func moved(_ suffix: String) async throws {
    let registration = Fixture.registration()
    #expect(try await store.register(registration) == .inserted)
    let (path, aside) = (store.path + suffix, store.path + suffix + ".aside")
    try FileManager.default.moveItem(atPath: path, toPath: aside)
    try await expectRefusal()
    try FileManager.default.moveItem(atPath: aside, toPath: path)
    #expect(try await store.register(Fixture.registration()) == .inserted)
    #expect(try await store.count() == 2)
    #expect(store.health == .healthy)
  }

  @Test("A store that was restored reports its recovery without further calls", .timeLimit(.minutes(1)))
  func recoversUnasked() async throws {
    #expect(try await store.register(Fixture.registration()) == .inserted)
    let aside = store.path + ".aside"
    try FileManager.default.moveItem(atPath: store.path, toPath: aside)
    try await expectRefusal()
    // Probes while the file is absent neither succeed nor create another file.
    try await Task.sleep(for: .seconds(3))
    guard case .failing = store.health else {
      Issue.record("healthy: \(store.health)")
      return
    }
    #expect(!FileManager.default.fileExists(atPath: store.path))
    try FileManager.default.moveItem(atPath: aside, toPath: store.path)
    while store.health != .healthy { try await Task.sleep(for: .milliseconds(50)) }
    #expect(try await store.count() == 1)
  }

  @Test("A store that another database has replaced refuses every call")
  func replaced() async throws {
    #expect(try await store.register(Fixture.registration()) == .inserted)
    let other = SQLiteStore(path: folder.file("other.db"))
    try await other.open()
    await other.close()
    #expect(rename(folder.file("other.db"), store.path) == 0)
    try await expectRefusal()
  }

  @Test("After an error has closed its connection, a store opens no other database")
  func reopened() async throws {
    #expect(try await store.register(Fixture.registration()) == .inserted)
    try await store.writes.run { try $0.execute(sql: "PRAGMA query_only = ON") }
    // Closes the connection, so that the next call opens the file.
    await #expect(throws: StoreError.readOnly) { try await store.register(Fixture.registration()) }
    for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: store.path + suffix) }
    try await expectRefusal()
    #expect(!FileManager.default.fileExists(atPath: store.path))
  }
}

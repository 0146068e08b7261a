import ByteCoding
import Foundation
import GRDB

/// A gate's SQLite file, opened as an operator's tools would open it.
struct StateFile {
  let database: DatabaseQueue

  init(of gate: RunningGate) throws {
    var configuration = Configuration()
    // `lock` needs it.
    configuration.allowsUnsafeTransactions = true
    configuration.busyMode = .timeout(5)
    database = try DatabaseQueue(path: gate.folder + "/state.db", configuration: configuration)
  }

  func revoke(_ device: TestDevice) throws {
    let keyID = Data(Base64.decode(device.keyID) ?? [])
    try database.write { db in
      try db.execute(
        sql: "UPDATE attested_keys SET revoked_at = ? WHERE key_id = ?",
        arguments: [Timestamp.now().milliseconds, keyID])
      guard db.changesCount == 1 else { throw NoSuchEntry(line: "no such key") }
    }
  }

  /// Stores a risk metric of a device that the gate has not admitted yet.
  func assess(_ device: TestDevice, _ metric: Int, isOutdated: Bool = false) throws {
    let keyID = Data(Base64.decode(device.keyID) ?? [])
    try database.write { db in
      try db.execute(
        sql: "UPDATE attested_keys SET risk = ?, risk_at = ?, risk_outdated = ? WHERE key_id = ?",
        arguments: [metric, Timestamp.now().milliseconds, isOutdated, keyID])
      guard db.changesCount == 1 else { throw NoSuchEntry(line: "no such key") }
    }
  }

  /// Returns the counter of the only key.
  func counter() throws -> Int? { try database.read { try Int.fetchOne($0, sql: "SELECT counter FROM attested_keys") } }

  /// Locks the file for writing until `unlock()`.
  func lock() throws { try database.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") } }
  func unlock() throws { try database.inDatabase { try $0.execute(sql: "ROLLBACK") } }
}

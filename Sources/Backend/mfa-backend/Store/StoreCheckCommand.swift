internal import ArgumentParser
internal import Commands
internal import MFADomain
internal import MFAService
internal import MFAStore

struct StoreCheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Reads the whole database and reports problems, with advice for each.",
    discussion: """
      Changes nothing; backends can keep running. Verifies the pages of a SQLite file, the version of the tables, the \
      keys file against the data keys, and the chain of the history. Exits 0 if there are no problems, 1 otherwise.

      Example:

        mfa-backend store check -c /etc/mfa/mfa.yaml
      """)

  @OptionGroup var target: StoreTarget

  private struct Finding: Encodable {
    let area: String
    let text: String
    let advice: String
  }

  private struct Summary: Encodable {
    let store: String
    let findings: [Finding]
  }

  func run() async throws {
    let (place, archive) = try target.resolve()
    let findings = try await Self.findings(place, archive, target.database)
    let lines = findings.flatMap { ["problem: \($0.text)", "  \($0.advice)"] }
    let verdict = findings.isEmpty ? "\(place.place): no problems found" : "\(place.place):"
    target.format.print(
      ([verdict] + lines).joined(separator: "\n"), Summary(store: place.place, findings: findings))
    if !findings.isEmpty { throw ExitCode(Status.problems.rawValue) }
  }

  private static func findings(
    _ place: BackendSettings.Database, _ archive: StoreArchive, _ options: DatabaseOptions
  ) async throws -> [Finding] {
    let state: StoreArchive.SchemaState
    do throws(MFAStoreError) {
      // First the file: its tables cannot be read if it is no database.
      let damage = try archive.damage()
      if !damage.isEmpty { return damage.map(damaged) }
      state = try archive.schema()
    } catch {
      throw Failure(
        .unavailable, "\(place.place): \(error.reason)",
        hint: place.hintOfFailure)
    }
    guard state.version > 0 else {
      throw Failure(
        .noInput, "\(place.place): no database of mfa-backend exists here",
        hint: "create it with: mfa-backend store migrate")
    }
    guard state.isCurrent else {
      return [
        Finding(
          area: "tables", text: "its tables have version \(state.version), this mfa-backend needs \(state.newest)",
          advice: "run mfa-backend store migrate, then check again")
      ]
    }
    return try await secrets(options)
  }

  /// Opens the data keys and verifies the history.
  private static func secrets(_ options: DatabaseOptions) async throws -> [Finding] {
    let (store, keys) = try options.open()
    do {
      let history = try await Vault.historyKeys(in: store, with: keys)
      // A database on which no backend has run yet has neither keys nor entries.
      if history == nil, try await store.read({ try $0.lastAuditEntry() == nil }) { return [] }
      let verdict = try await AuditTrail(store, history).verify()
      guard let fault = verdict.fault else { return [] }
      return [
        Finding(
          area: "history", text: fault.text,
          advice: "see who could write to the database; mfa-backend audit verify --head checks against the log")
      ]
    } catch let fault as Vault.Unopenable {
      return [
        Finding(
          area: "keys", text: fault.reason,
          advice: "use the keys file that contains every key that still seals a data key")
      ]
    }
  }

  private static func damaged(_ reason: String) -> Finding {
    Finding(
      area: "file", text: "damaged: \(reason)",
      advice: "stop the backends, keep a copy of the file, move it away, then: mfa-backend store migrate, restore FILE")
  }
}

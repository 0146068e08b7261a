internal import ArgumentParser
internal import ByteCoding
internal import MFADomain
internal import MFASettings

/// The history of what was decided.
struct AuditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit",
    abstract: "Checks and exports the history.",
    discussion: """
      Example:

        mfa-backend audit verify --database sqlite:///var/lib/mfa/mfa.db
      """,
    subcommands: [Verify.self, Export.self])

  struct Database: ParsableArguments {
    @OptionGroup var options: DatabaseOptions

    func trail() throws -> AuditTrail {
      // The history is no secret of the database's, so its keys are not asked for.
      AuditTrail(try options.reader().readDatabase(needsKeys: false).openExisting())
    }
  }

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Checks that nothing was changed, taken out or moved. Prints the number and hash of the last entry.",
      discussion:
        "Keep what it prints elsewhere, and give it with --known the next time: that nothing was cut off the end shows by that alone. Exits 1 if the chain is broken."
    )
    @OptionGroup var database: Database
    @Option(help: "NUMBER:HASH, as an earlier run printed it.") var known: String?

    func run() async throws { try await CommandFault.telling(verify) }

    private func verify() async throws {
      let verdict = try await database.trail().verify(known: try knownEntry())
      guard let fault = verdict.fault else {
        return try Console.print("\(verdict.entries):\(Hex.encode(verdict.lastHash))")
      }
      switch fault {
      case .changed(let sequence): Console.error("error: entry \(sequence) was changed")
      case .broken(let sequence): Console.error("error: entry \(sequence) does not follow the one before it")
      case .cutOff(let last, let expected):
        Console.error("error: the history ends with entry \(last), and had \(expected)")
      }
      throw ExitCode(1)
    }

    private func knownEntry() throws -> (sequence: Int64, hash: [UInt8])? {
      guard let known else { return nil }
      let parts = known.split(separator: ":")
      guard parts.count == 2, let sequence = Int64(parts[0]), let hash = Hex.decode(parts[1]) else {
        throw ValidationError("--known \(known): write NUMBER:HASH")
      }
      return (sequence, hash)
    }
  }

  struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints every entry as one line of JSON.")
    @OptionGroup var database: Database

    func run() async throws { try await CommandFault.telling(export) }

    private func export() async throws {
      try await database.trail().forEach { entry, hash in
        try Console.print(
          "{\"sequence\":\(entry.sequence),"
            + JSONText.object([
              "at": entry.at.description, "event": entry.event, "account": entry.account ?? "", "actor": entry.actor,
              "requestId": entry.requestID, "detail": entry.detail, "previous": Hex.encode(entry.previous),
              "hash": Hex.encode(hash),
            ]).dropFirst())
      }
    }
  }
}

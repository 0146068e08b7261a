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

        mfa-backend audit verify --database sqlite:///var/lib/mfa/mfa.db --keys /etc/mfa/keys.json
      """,
    subcommands: [Verify.self, Export.self])

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Checks that nothing was changed, taken out or moved. Prints the number and hash of the last entry.",
      discussion: """
        Exits 1 if the chain is broken. Entries cut off the end show only by what was known before: give with --head what \
        the log has as \"head\" in its lines \"history head\", or with --known what an earlier run has printed.

        It needs the keys file, since the hashes have a key. It changes no entry and makes no key.
        """)
    @OptionGroup var database: DatabaseOptions
    @Option(
      name: .customLong("head"),
      help: "A signed head from the log, whose entry must still be there. Can be given several times.")
    var heads: [String] = []
    @Option(help: "NUMBER:HASH, as an earlier run printed it.") var known: String?

    func run() async throws { try await CommandFault.telling(verify) }

    private func verify() async throws {
      let known = try knownEntry()
      let heads = try heads.map { text in
        guard let head = HistoryHead(text) else {
          throw ValidationError("--head \(text): write it as the log has it, NUMBER:HASH:MILLISECONDS:KEY:MAC")
        }
        return head
      }
      let (store, wrapping) = try database.open()
      let keys = try await Vault.historyKeys(in: store, with: wrapping)
      for head in heads where keys?.verifies(head) != true {
        BackendConsole.error("error: no key of this database has signed the head \(head)")
        throw ExitCode(1)
      }
      let verdict = try await AuditTrail(store, keys).verify(
        known: heads.map { ($0.sequence, $0.hash) } + (known.map { [$0] } ?? []))
      if let fault = verdict.fault {
        BackendConsole.error(AuditCommand.lines(of: fault))
        throw ExitCode(1)
      }
      if verdict.unkeyed > 0 {
        BackendConsole.error(
          "note: entries 1 to \(verdict.unkeyed) are of an older version and have no key; entry \(verdict.unkeyed + 1) "
            + "covers them as they were when it was written")
      }
      try BackendConsole.print("\(verdict.entries):\(Hex.encode(verdict.lastHash))")
    }

    private func knownEntry() throws -> AuditTrail.KnownEntry? {
      guard let known else { return nil }
      let parts = known.split(separator: ":")
      guard parts.count == 2, let sequence = Int64(parts[0]), let hash = Hex.decode(parts[1]) else {
        throw ValidationError("--known \(known): write NUMBER:HASH")
      }
      return (sequence, hash)
    }
  }

  private static func lines(of fault: AuditTrail.Fault) -> String {
    switch fault {
    case .changed(let sequence): "error: entry \(sequence) was changed"
    case .broken(let sequence): "error: entry \(sequence) does not follow the one before it"
    case .cutOff(let last, let expected): "error: the history ends with entry \(last), and had \(expected)"
    case .olderKey(let sequence):
      "error: entry \(sequence) has no key, or an older one than the entry before it\n"
        + "hint: a backend of an older version, or one that ran during keys reseal, may have written it"
    case .unknownKey(let sequence, let key):
      "error: entry \(sequence) has the key \(key), which the database does not have"
    case .keyWithoutEntries(let key): "error: no entry at the end has the newest key, \(key): entries were taken out"
    case .noKey:
      "error: the database has no key for its history\n"
        + "hint: mfa-backend run makes it at its first start; if it ran before, the key was taken out"
    }
  }

  struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints every entry as one line of JSON.")
    @OptionGroup var database: DatabaseOptions

    func run() async throws { try await CommandFault.telling(export) }

    private func export() async throws {
      // The history is no secret of the database's, so its keys are not asked for.
      let store = try database.reader().readDatabase(needsKeys: false).openExisting()
      try await AuditTrail(store, nil).forEach { entry, hash in
        try BackendConsole.print(
          "{\"sequence\":\(entry.sequence),"
            + JSONText.object([
              "at": entry.at.description, "event": entry.event, "account": entry.account ?? "", "actor": entry.actor,
              "requestId": entry.requestID, "detail": entry.detail, "previous": Hex.encode(entry.previous),
              "hash": Hex.encode(hash), "key": entry.keyNumber.map { "\($0)" } ?? "",
            ]).dropFirst())
      }
    }
  }
}

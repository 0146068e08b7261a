internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFADelivery
internal import MFADomain
internal import MFAService

/// The commands that verify, search and export the audit history.
struct AuditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit",
    abstract: "Checks, searches and exports the history.",
    discussion: """
      Example:

        mfa-backend audit verify
      """,
    subcommands: [Verify.self, Search.self, Export.self])

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "verify",
      abstract: "Verifies that no entry was changed, removed or moved. Prints the number and hash of the last entry.",
      discussion: """
        Exits 1 if the chain is broken. Entries removed from the end can only be detected with an earlier state: give \
        the "head" of a "history head" line of the log with --head, or the output of an earlier run with --known.

        The command needs the keys file, because the hashes use a key. It changes no entry and creates no key.

        Example:

          mfa-backend audit verify --known "$(cat verified)"
        """)
    @OptionGroup var database: DatabaseOptions
    @Option(
      name: .customLong("head"),
      help: "A signed head from the log. Its entry must still exist. Can be given several times.")
    var heads: [String] = []
    @Option(help: "NUMBER:HASH from the output of an earlier run.") var known: String?
    @OptionGroup var format: ResultFormat

    /// The last entry of a history without fault, for programs.
    private struct LastEntry: Encodable {
      let sequence: Int64
      let hash: String
    }

    func run() async throws {
      let known = try knownEntry()
      let heads = try heads.map { text in
        guard let head = HistoryHead(text) else {
          throw ValidationError("--head \(text): must be NUMBER:HASH:MILLISECONDS:KEY:MAC, as in the log")
        }
        return head
      }
      let (store, wrapping) = try database.open()
      let keys = try await Vault.historyKeys(in: store, with: wrapping)
      for head in heads where keys?.verifies(head) != true {
        throw Failure(.problems, "no key of this database signed the head \(head)")
      }
      let verdict = try await AuditTrail(store, keys).verify(
        known: heads.map { ($0.sequence, $0.hash) } + (known.map { [$0] } ?? []))
      if let fault = verdict.fault { throw Failure(.problems, fault.text, hint: fault.hint) }
      if verdict.unkeyed > 0 {
        Console.note(
          "note: an older version wrote entries 1 to \(verdict.unkeyed) without a key; entry \(verdict.unkeyed + 1) "
            + "covers their state at the time it was written")
      }
      let hash = Hex.encode(verdict.lastHash)
      format.print("\(verdict.entries):\(hash)", LastEntry(sequence: verdict.entries, hash: hash))
    }

    private func knownEntry() throws -> AuditTrail.KnownEntry? {
      guard let known else { return nil }
      let parts = known.split(separator: ":", omittingEmptySubsequences: false)
      // A hash that was cut off would be reported as a changed entry.
      guard parts.count == 2, let sequence = Int64(parts[0]), sequence >= 0, let hash = Hex.decode(parts[1]),
        hash.count == AuditEntry.origin.count
      else { throw ValidationError("--known \(known): must be NUMBER:HASH, as an earlier run has printed it") }
      return (sequence, hash)
    }
  }

  struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "export",
      abstract: "Prints every entry as one line of JSON.",
      discussion: """
        Example:

          mfa-backend audit export >history.jsonl
        """)
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
      // The history is stored unencrypted, so its export needs no keys.
      let store = try database.reader().readDatabase(needsKeys: false).openExisting()
      try await AuditTrail(store, nil).forEach { entry, hash in
        let line = AuditLine.json(entry, hash: hash)
        // A reader that has gone wants no further entry.
        guard StandardOutput.write(TerminalText.escaped(json: line) + "\n") else { throw ExitCode.success }
      }
    }
  }
}

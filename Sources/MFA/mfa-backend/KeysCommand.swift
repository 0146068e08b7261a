internal import ArgumentParser
internal import ByteCoding
internal import MFADomain

/// The keys that secrets are sealed under.
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "Makes and rotates key-encryption keys.",
    discussion: """
      Example: a file with a new key in front of the old one, then

        mfa-backend keys rotate --database sqlite:///var/lib/mfa/mfa.db --keys /etc/mfa/keys.json
      """,
    subcommands: [Make.self, Rotate.self, Reseal.self])

  struct Make: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints a keys file with one new key.")
    @Option(help: "The key's name, which no other key of yours has. Without it, the date and a random number.")
    var name: String?

    func run() async throws {
      try await CommandFault.telling {
        let key = Base64.encode(Entropy.system.bytes(32))
        try BackendConsole.print("[" + JSONText.object(["name": name ?? Self.freshName(), "key": key]) + "]")
      }
    }

    /// `2026-11-21-3fa90c1e`: the day, so that people know which key is the newer one, and what two of a day differ by.
    private static func freshName() -> String {
      "\(WallClock.system.now())".prefix(10) + "-" + Hex.encode(Entropy.system.bytes(4))
    }
  }

  struct Reseal: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes a new data key, and seals every number, address and shared secret under it.",
      discussion: """
        The history goes on under a new key as well; its older entries keep theirs. Stop the servers first: they read the \
        data keys when they start, and would not know these.
        """)
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
      try await CommandFault.telling {
        let (store, keys) = try database.open()
        let count = try await Resealing(store, keys).run()
        try BackendConsole.print("\(count) values sealed again")
      }
    }
  }

  struct Rotate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Seals the data keys under the first key of the file; the others can then be taken out of it.")
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
      try await CommandFault.telling {
        let (store, keys) = try database.open()
        let count = try await Vault.rewrap(in: store, with: keys, entropy: .system)
        try BackendConsole.print("\(count) data keys sealed again")
      }
    }
  }
}

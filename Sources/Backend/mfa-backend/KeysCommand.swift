internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFADomain

/// The commands that create and rotate the keys that seal secrets.
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "Creates and rotates key-encryption keys.",
    discussion: """
      Example: put a new key before the old one in the file, then

        mfa-backend keys rotate
      """,
    subcommands: [Make.self, Rotate.self, Reseal.self])

  struct Make: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "make",
      abstract: "Prints a keys file with one new key.",
      discussion: """
        Example:

          mfa-backend keys make | install -m 400 /dev/stdin keys.json
        """)
    @Option(help: "A unique name for the key. Default: the date and a random number.")
    var name: String?

    func run() async throws {
      guard name != "" else {
        throw Failure(
          .usage, "--name: the name of a key is not empty", hint: "without --name, the key gets a name of its own")
      }
      let key = Base64.encode(Entropy.system.bytes(32))
      Console.print("[" + JSONText.object(["name": name ?? Self.freshName(), "key": key]) + "]")
    }

    /// A name such as `2026-11-21-3fa90c1e`: the day shows people which key is newer, and the number makes it unique.
    private static func freshName() -> String {
      "\(WallClock.system.now())".prefix(10) + "-" + Hex.encode(Entropy.system.bytes(4))
    }
  }

  /// The number of values or keys that a command sealed again, for programs.
  private struct Resealed: Encodable {
    let resealed: Int
  }

  struct Reseal: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "reseal",
      abstract: "Creates a new data key and reseals every phone number, address and shared secret under it.",
      discussion: """
        The history continues under a new key as well; older entries keep their keys. Stop the servers first: they \
        read the data keys only at start and would not know the new ones.

        Example:

          mfa-backend keys reseal
        """)
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    func run() async throws {
      let (store, keys) = try database.open()
      let count = try await Resealing(store, keys).run()
      format.print("\(count) values resealed", Resealed(resealed: count))
    }
  }

  struct Rotate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rotate",
      abstract: "Reseals the data keys under the first key of the file. The other keys can then be removed from it.",
      discussion: """
        Example:

          mfa-backend keys rotate
        """)
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    func run() async throws {
      let (store, keys) = try database.open()
      let count = try await Vault.rewrap(in: store, with: keys, entropy: .system)
      format.print("\(count) data keys resealed", Resealed(resealed: count))
    }
  }
}

internal import ArgumentParser
internal import ByteCoding
internal import MFADomain

/// The keys that secrets are sealed under.
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "Makes and rotates key-encryption keys.",
    discussion: """
      Example: a new key, put in front of the old one in the file, then

        mfa-backend keys rotate --database sqlite:///var/lib/mfa/mfa.db --keys /etc/mfa/keys.json
      """,
    subcommands: [Make.self, Rotate.self, Reseal.self])

  struct Make: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints a keys file with one new key.")
    @Option(help: "The key's name.") var name = "1"

    func run() {
      let key = Base64.encode(Entropy.system.bytes(32))
      print("[" + JSONText.object(["name": name, "key": key]) + "]")
    }
  }

  struct Reseal: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Makes a new data key, and seals every number, address and shared secret under it.",
      discussion: "Stop the servers first: they read the data keys when they start, and would not know this one.")
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
      do {
        let (store, keys) = try database.open()
        print("\(try await Resealing(store, keys).run()) values sealed anew")
      } catch {
        throw CommandFault(error)
      }
    }
  }

  struct Rotate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Seals the data keys under the first key of the file; the others can then be taken out of it.")
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
      do {
        let (store, keys) = try database.open()
        let count = try await Vault.rewrap(in: store, with: keys, entropy: .system)
        print("\(count) data keys sealed anew")
      } catch {
        throw CommandFault(error)
      }
    }
  }
}

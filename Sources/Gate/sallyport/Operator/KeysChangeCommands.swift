internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import GateRuntime
internal import GateService
internal import Glibc

struct KeysRevokeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Revokes keys and closes their open sessions.",
    discussion: """
      The gate refuses a revoked key, and closes its open sessions with 3003 within 2 seconds. The device is not \
      banned: it can attest a new key.

      Example:

        sallyport keys revoke Kq3bX0rJ
      """)

  @OptionGroup var options: StoreOptions
  @OptionGroup var keys: KeyArguments

  func run() async throws {
    try await keys.change("revoke", with: options)
  }
}

struct KeysRestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Restores revoked keys.",
    discussion: """
      Example:

        sallyport keys restore Kq3bX0rJ
      """)

  @OptionGroup var options: StoreOptions
  @OptionGroup var keys: KeyArguments

  func run() async throws {
    try await keys.change("restore", with: options)
  }
}

extension KeyArguments {
  /// Looks up every key before the first change, so that an unknown or ambiguous key leaves all keys unchanged.
  fileprivate func resolved(at client: AdminClient) async throws(Failure) -> [KeyDescription] {
    var found: [KeyDescription] = []
    for name in names { found.append(try await client.send("GET", "/v1/keys/\(name)", KeyDescription.self)) }
    return found
  }

  fileprivate func change(_ action: String, with options: StoreOptions) async throws(Failure) {
    try await options.withAdminClient { client throws(Failure) in
      for key in try await resolved(at: client) {
        let changed = try await client.send("POST", "/v1/keys/\(key.key)/\(action)", KeyDescription.self)
        if json { print(changed) } else { Console.print("\(changed.key)\t\(changed.state)") }
      }
    }
  }
}

struct KeysRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm",
    abstract: "Removes keys; their devices must attest new ones.",
    discussion: """
      To block a key, revoke it instead: a removed key leaves no record, so later refusals are not explained. Asks for \
      confirmation on a terminal; elsewhere --yes is required.

      Example:

        sallyport keys rm Kq3bX0rJ --yes
      """)

  @OptionGroup var options: StoreOptions
  @OptionGroup var keys: KeyArguments

  @Flag(name: [.short, .long], help: "Do not ask for confirmation.")
  var yes = false

  func run() async throws {
    guard yes || StandardInput.isTerminal else {
      throw Failure(
        .usage, "removing keys cannot be undone, and there is no terminal to confirm it", hint: "add --yes")
    }
    try await options.withAdminClient { client throws(Failure) in
      // All are looked up before the first is removed. One whose row cannot be read can still be removed.
      var found: [(name: String, question: String)] = []
      for name in keys.names {
        let key = try await client.key(named: name)
        // Two of the names may be of one key.
        guard !found.contains(where: { $0.name == key?.key ?? name }) else { continue }
        found.append((key?.key ?? name, Self.question(about: key, named: name)))
      }
      for (name, question) in found { try await remove(name, question, at: client) }
    }
  }

  private static func question(about key: KeyDescription?, named name: String) -> String {
    guard let key else { return "Remove the key \(name), whose row cannot be read?" }
    return "Remove the key \(key.key) of \(key.app), registered \(KeyArguments.second(of: key.registeredAt))?"
  }

  private func remove(_ name: String, _ question: String, at client: AdminClient) async throws(Failure) {
    guard yes || Console.confirms(question) else {
      throw Failure(.problems, "the key \(name) was not removed", hint: "answer y to remove it")
    }
    let removal = try await client.send("DELETE", "/v1/keys/\(name)", KeyRemoval.self)
    Console.print(keys.json ? JSONText.encoding(removal) : "\(removal.key)\tremoved")
  }
}

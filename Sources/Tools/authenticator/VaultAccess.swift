internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation

/// The options of all commands, and the way to the vault.
struct VaultOptions: ParsableArguments {
  @Option(
    name: .long, help: ArgumentHelp("The folder of the vault (or AUTHENTICATOR_VAULT).", valueName: "dir"))
  var vault: String?

  @Option(
    name: .long,
    help: ArgumentHelp(
      "A file whose first line is the passphrase (or AUTHENTICATOR_PASSPHRASE_FILE); otherwise the terminal is asked.",
      valueName: "file"))
  var passphraseFile: String?

  @Flag(name: .long, help: "Write results as JSON.")
  var json = false

  func folder() throws(Failure) -> VaultFolder {
    try VaultFolder(path: vault, environment: ProcessInfo.processInfo.environment)
  }

  /// Now, in milliseconds since 1970.
  static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

  /// Opens the vault for reading.
  ///
  /// - Throws: `.noInput` if there is none.
  func open() throws(Failure) -> OpenVault {
    let folder = try folder()
    guard let file = try folder.read() else {
      throw Failure(
        .noInput, "there is no vault in \(folder.path)",
        hint: "`authenticator add`, `scan FILE` or `import FILE` make one with the first entry")
    }
    return try open(file, at: folder.vaultPath)
  }

  /// Opens `file` with the key of the session, or with the passphrase.
  func open(_ file: VaultFile, at path: String) throws(Failure) -> OpenVault {
    let key =
      if let key = SessionKeyring.key(file.keyID) { key } else {
        try file.key(passphrase: passphrase("Passphrase of \(path): "), at: path)
      }
    return try file.opened(with: key, at: path)
  }

  /// Changes the vault and saves it. Makes a vault if there is none and `makesVault`.
  ///
  /// - Parameter known: The key, if it is known already: then no passphrase is needed.
  func change<Value>(
    makesVault: Bool = false, with known: VaultKey? = nil, _ body: (inout Vault) throws -> Value
  ) throws -> Value {
    let folder = try folder()
    // The passphrase is asked for before the lock is taken: a person may think for long.
    let key = try known ?? folder.read().map { file in try open(file, at: folder.vaultPath).key }
    if key == nil, !makesVault { _ = try open() }
    let fresh = key == nil ? try makeVault(in: folder) : nil
    return try folder.locked {
      var opened: OpenVault
      if let file = try folder.read() {
        guard let key else {
          throw Failure(.retryLater, "another process has made a vault in the meantime", hint: "try again")
        }
        opened = try file.opened(with: key, at: folder.vaultPath)
      } else if let fresh {
        opened = fresh
      } else {
        throw Failure(.noInput, "the vault in \(folder.path) is gone", hint: "`authenticator check` shows its versions")
      }
      let before = opened.vault
      let value = try body(&opened.vault)
      opened.vault.purge(at: Self.now)
      if opened.vault != before || fresh != nil { try folder.write(opened.file) }
      return value
    }
  }

  private func makeVault(in folder: VaultFolder) throws(Failure) -> OpenVault {
    if let latest = try folder.versions().first {
      throw Failure(
        .noInput, "the vault in \(folder.path) is gone, and older versions of it are there",
        hint: "copy \(latest) to \(folder.vaultPath), or name another folder with --vault")
    }
    StandardError.write(TerminalText.printable("This makes a vault in \(folder.path).") + "\n")
    let passphrase = try newPassphrase()
    let key = VaultKey()
    return OpenVault(vault: Vault(), key: key, slots: try Self.slots(key, passphrase))
  }

  static func slots(_ key: VaultKey, _ passphrase: String) throws(Failure) -> VaultFile.Slots {
    do throws(VaultError) {
      return VaultFile.Slots([try PassphraseSlot(key, passphrase: passphrase)], changedAt: now)
    } catch {
      throw Failure(error, at: "passphrase")
    }
  }

  /// Warns of entries whose secrets are weak.
  static func warn(of entries: [VaultEntry]) {
    for warning in entries.compactMap(\.weakness) {
      StandardError.write(TerminalText.printable("warning: \(warning)") + "\n")
    }
  }

  // MARK: Passphrases

  private var namedFile: String? {
    let named = passphraseFile ?? ProcessInfo.processInfo.environment["AUTHENTICATOR_PASSPHRASE_FILE"]
    return named.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The passphrase, from the file or the terminal.
  func passphrase(_ question: String) throws(Failure) -> String {
    if let namedFile { return try Self.passphrase(in: namedFile) }
    return try Self.ask(question, file: "--passphrase-file")
  }

  /// A new passphrase, from the file or twice from the terminal.
  func newPassphrase() throws(Failure) -> String {
    if let namedFile { return try Self.passphrase(in: namedFile) }
    return try Self.askTwice("New passphrase: ", file: "--passphrase-file")
  }

  /// The first line of `file`. No vault has an empty passphrase: the program that was to write the file has failed.
  private static func passphrase(in file: String) throws(Failure) -> String {
    let passphrase = try InputFile.firstLine(file)
    guard !passphrase.isEmpty else { throw Failure(.usage, "the first line of \(file) is empty") }
    return passphrase
  }

  /// Asks the terminal for a secret.
  static func ask(_ question: String, file option: String) throws(Failure) -> String {
    try ask(
      question, hint: "\(option) names a file with it; `authenticator unlock` keeps the vault open for a while")
  }

  /// Asks the terminal for a secret. `hint` says what to do where there is none.
  static func ask(_ question: String, hint: String) throws(Failure) -> String {
    guard let terminal = Terminal() else {
      throw Failure(.noInput, "there is no terminal to ask for a passphrase", hint: hint)
    }
    guard let answer = terminal.ask(question, isSecret: true) else {
      throw Failure(.noInput, "nothing was entered, or no UTF-8 text")
    }
    return answer
  }

  /// Asks the terminal for a new secret, twice.
  static func askTwice(_ question: String, file option: String) throws(Failure) -> String {
    let first = try ask(question, file: option)
    guard !first.isEmpty else {
      throw Failure(.usage, "the passphrase is empty", hint: "four or five random words are good")
    }
    guard try ask("The same again: ", file: option) == first else {
      throw Failure(.usage, "the two passphrases are different", hint: "nothing was written; try again")
    }
    return first
  }
}

/// A vault with its key.
struct OpenVault {
  var vault: Vault
  let key: VaultKey
  var slots: VaultFile.Slots

  /// The file that has all of it.
  var file: VaultFile { VaultFile(vault, key: key, slots: slots) }
}

extension VaultFile {
  /// The key under `passphrase`, with errors for the user.
  func key(passphrase: String, at path: String) throws(Failure) -> VaultKey {
    do throws(VaultError) { return try key(passphrase: passphrase) } catch { throw Failure(error, at: path) }
  }

  /// The vault, with errors for the user.
  func opened(with key: VaultKey, at path: String) throws(Failure) -> OpenVault {
    do throws(VaultError) {
      return OpenVault(vault: try vault(key: key), key: key, slots: slots)
    } catch {
      throw Failure(error, at: path)
    }
  }
}

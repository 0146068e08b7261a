internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation
internal import OneTimePasswords
internal import VaultFormats

struct AddCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Add an entry by its secret or its otpauth URI.",
    discussion: """
      The secret is asked for, or read from standard input or a file, never from the command line, which others can \
      see. Example:
        authenticator add GitHub:alice
        authenticator add --secret-file uri.txt        # has an otpauth:// URI
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "Issuer and account, as in GitHub:alice. Not needed for a URI.")
  var name: String?

  @Option(
    help: ArgumentHelp("A file whose first line is the secret or the URI; - is standard input.", valueName: "file"))
  var secretFile: String?

  @Option(help: "How codes are made: totp, hotp or steam.")
  var type = "totp"

  @Option(help: "SHA1, SHA256 or SHA512.")
  var algorithm = "SHA1"

  @Option(help: "The digits of a code, 5 to 10. (default: 6; 5 for steam)")
  var digits: Int?

  @Option(help: "The seconds of a code, 1 to 300.")
  var period = 30

  @Option(help: "The next counter of hotp.")
  var counter: UInt64 = 0

  func run() throws {
    let entry = try entry(secretText())
    VaultOptions.warn(of: [entry])
    let addition = try options.change(makesVault: true) { $0.add(entry, at: entry.createdAt) }
    Additions([(entry, addition)]).report(json: options.json)
  }

  private func secretText() throws(Failure) -> String {
    if let secretFile { return try InputFile.firstLine(secretFile) }
    if !StandardInput.isTerminal { return try InputFile.firstLine("-") }
    return try VaultOptions.ask("Secret or otpauth URI: ", file: "--secret-file")
  }

  func entry(_ text: String) throws(Failure) -> VaultEntry {
    let text = text.trimmingCharacters(in: .whitespaces)
    if EntryLink.isMigration(text) {
      throw Failure(
        .usage, "this is a link of an export, which may have several entries",
        hint: "save it in a file: authenticator import FILE")
    }
    if EntryLink.isLink(text) {
      guard !hasParameters else {
        throw Failure(
          .usage, "the URI itself says how codes are made",
          hint: "leave --type, --algorithm, --digits, --period and --counter out")
      }
      do throws(EntryLink.Fault) { return try EntryLink.entry(text, at: VaultOptions.now) } catch {
        throw Failure(error, at: "the URI")
      }
    }
    guard let name else {
      throw Failure(.usage, "the entry needs a name", hint: "authenticator add GitHub:alice")
    }
    let secret: [UInt8]
    do throws(Base32Error) { secret = try Base32.decodeSecret(text) } catch {
      throw Failure(.badData, "the secret is not valid: \(error)")
    }
    guard !secret.isEmpty else { throw Failure(.badData, "the secret is empty") }
    let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces) }
    let entry = VaultEntry(
      issuer: parts.count > 1 ? parts[0] : "", account: parts.last ?? "", secret: secret, kind: try kind(),
      algorithm: try hash(), digits: try checkedDigits(), counter: counter, at: VaultOptions.now)
    if let fault = EntryBounds.fault(in: entry) { throw Failure(.badData, fault) }
    return entry
  }

  /// Whether an option says something of how codes are made. One with its usual value is taken for absent.
  private var hasParameters: Bool {
    type != "totp" || algorithm != "SHA1" || digits != nil || period != 30 || counter != 0
  }

  private func kind() throws(Failure) -> VaultEntry.Kind {
    let name = type.lowercased()
    guard counter == 0 || !["totp", "steam"].contains(name) else {
      throw Failure(
        .usage, "--counter \(counter): codes of --type \(name) have no counter", hint: "those of --type hotp have one")
    }
    switch name {
    case "totp":
      guard (1...300).contains(period) else { throw Failure(.usage, "--period \(period): 1 to 300") }
      return .totp(period: period)
    case "hotp":
      guard period == 30 else {
        throw Failure(.usage, "--period \(period): the time has no part in codes of --type hotp", hint: "leave it out")
      }
      return .hotp
    case "steam":
      // The codes would be those of Steam's own parameters, whatever the options say.
      guard try hash() == .sha1, period == 30, digits ?? 5 == 5 else {
        throw Failure(
          .usage, "--type steam: only codes of SHA1, five characters and 30 s are known",
          hint: "leave --algorithm, --digits and --period out")
      }
      return .steam
    default: throw Failure(.usage, "--type \(type): totp, hotp or steam")
    }
  }

  private func hash() throws(Failure) -> TOTPAlgorithm {
    guard let algorithm = TOTPAlgorithm(name: algorithm) else {
      throw Failure(.usage, "--algorithm \(algorithm): SHA1, SHA256 or SHA512")
    }
    return algorithm
  }

  private func checkedDigits() throws(Failure) -> Int {
    if type.lowercased() == "steam" { return 5 }
    let digits = digits ?? 6
    guard (5...10).contains(digits) else { throw Failure(.usage, "--digits \(digits): 5 to 10") }
    return digits
  }
}

extension VaultEntry {
  /// What is weak about the secret (RFC 4226 section 4, requirement R6).
  var weakness: String? {
    secret.count >= 16
      ? nil : "the secret of \(name.debugDescription) has \(secret.count * 8) bits; 128 are the least that is safe"
  }
}

/// The entries of one call whose codes are those of another one of it, under another name.
enum SharedSecrets {
  /// Why each of them did not come in. The vault has one entry for one secret, which has one name.
  static func faults(in entries: [VaultEntry]) -> [String] {
    var names: [String: String] = [:]
    return entries.compactMap { entry in
      guard let first = names[entry.id] else {
        names[entry.id] = entry.name
        return nil
      }
      guard !first.utf8.elementsEqual(entry.name.utf8) else { return nil }
      return "\(entry.name): it has the secret and the codes of \(first), and one entry has one name"
    }
  }
}

/// What became of entries that were to be added.
struct Additions {
  private struct Row: Encodable {
    let id: String
    let name: String
    let result: String
  }

  private let rows: [Row]

  init(_ additions: [(entry: VaultEntry, addition: Vault.Addition)]) {
    rows = additions.map { entry, addition in
      let result =
        switch addition {
        case .added: "added"
        case .restored: "restored"
        case .alreadyThere(let name): Self.presence(of: entry, as: name)
        case .counterRaised(let name, let counter):
          "\(Self.presence(of: entry, as: name)); its counter is now \(counter)"
        }
      return Row(id: entry.id, name: entry.name, result: result)
    }
  }

  private static func presence(of entry: VaultEntry, as name: String) -> String {
    name == entry.name ? "already there" : "already there as \(name)"
  }

  func report(json: Bool) {
    if json {
      JSONOutput.print(rows)
    } else {
      for row in rows { StandardOutput.write("\(TerminalText.printable("\(row.name)  \(row.result)"))\n") }
    }
  }
}

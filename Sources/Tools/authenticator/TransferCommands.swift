public import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation
public import VaultFormats

extension VaultFormat: ExpressibleByArgument {}

extension Failure {
  /// What became of the file of another authenticator at `path`.
  init(_ error: VaultFormatError, at path: String) {
    switch error {
    case .unknownFormat:
      let names = VaultFormat.allCases.map(\.rawValue).joined(separator: ", ")
      self.init(.badData, "\(path): \(error)", hint: "--format names it: \(names)")
    case .malformed, .notAuthentic, .keyDerivation, .tooLarge, .tooComplex: self.init(.badData, "\(path): \(error)")
    case .memory:
      self.init(
        .unavailable, "\(path): \(error)", hint: "close other programs, or import it on a machine with more memory")
    case .malformedTable:
      self.init(.badData, "\(path): \(error)", hint: "export it from the app again, and do not edit it")
    case .wrongPassword: self.init(.refused, "\(path): \(error)", hint: "nothing was written; try again")
    case .unsupported(_, let hint): self.init(.badData, "\(path): \(error)", hint: hint)
    }
  }
}

struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Add the entries of files of other authenticators.",
    discussion: """
      Aegis, 2FAS, Google Authenticator (migration links), ente, lists of otpauth links, andOTP, Bitwarden, FreeOTP+, \
      Proton, Stratum, OTPClient, KeePassXC (CSV), 1Password (CSV, or export.data of a .1pux) and Steam's maFile. Of \
      password managers only the codes are read, never the passwords. The format is detected. What is there already stays as it is, except for a counter, \
      which only grows. An entry that is of no use is named; the others come in. Example:
        authenticator import aegis-backup.json --dry-run
        authenticator import aegis-backup.json
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "Files, or - for standard input.")
  var files: [String]

  @Option(help: "The format, if it is not detected.")
  var format: VaultFormat?

  @Option(help: ArgumentHelp("A file whose first line is the password of the files.", valueName: "file"))
  var passwordFile: String?

  @Flag(help: "Show what would come in, and change nothing.")
  var dryRun = false

  func run() throws {
    let now = VaultOptions.now
    var entries: [VaultEntry] = []
    var faults: [String] = []
    var notes: [String] = []
    for file in files {
      let bytes = try InputFile.read(file, largest: VaultReader.largest) ?? []
      let imported: ImportedFile
      do {
        imported = try VaultReader.read(bytes, as: format, at: now) { try password(of: file) }
      } catch let error as VaultFormatError {
        throw Failure(error, at: file)
      }
      entries += imported.entries
      faults += imported.faults.map { "\(file): \($0.place): \($0.reason)" }
      notes += imported.discarded.map { "\(file): \($0.place): \($0.reason), and stays there" }
      notes += imported.notes.map { "\(file): \($0.text)" }
      faults += imported.missingParts.map { "\(file): part \($0) of the migration is missing" }
    }
    let shared = SharedSecrets.faults(in: entries)
    faults += shared
    for fault in faults { StandardError.write(TerminalText.printable("warning: \(fault)") + "\n") }
    for note in notes { StandardError.write(TerminalText.printable("note: \(note)") + "\n") }
    VaultOptions.warn(of: entries)
    if !entries.isEmpty { Additions(try add(entries, at: now)).report(json: options.json) }
    guard faults.isEmpty else {
      throw Failure(
        .badData, "\(faults.count) of \(entries.count + faults.count - shared.count) could not be imported",
        hint: entries.isEmpty ? nil : dryRun ? "the others would come in" : "the others came in")
    }
    guard !entries.isEmpty else { throw Failure(.badData, "there is no entry in \(files.joined(separator: ", "))") }
  }

  private func add(_ entries: [VaultEntry], at time: Int64) throws -> [(VaultEntry, Vault.Addition)] {
    if dryRun {
      let folder = try options.folder()
      var vault = try folder.read() == nil ? Vault() : options.open().vault
      return entries.map { ($0, vault.add($0, at: time)) }
    }
    return try options.change(makesVault: true) { vault in
      entries.map { ($0, vault.add($0, at: time)) }
    }
  }

  private func password(of file: String) throws(Failure) -> String {
    if let passwordFile { return try InputFile.firstLine(passwordFile) }
    return try VaultOptions.ask("Password of \(file): ", file: "--password-file")
  }
}

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write the entries to a file for another authenticator, or as a backup.",
    discussion: """
      Aegis and 2FAS are encrypted under a password, which is asked for twice; the file is then opened again with it \
      before the command reports success. What a format does not keep of an entry is named. Google's links and otpauth \
      lists have no password: --plain says that this is wanted. Example:
        authenticator export --to aegis backup.json
        authenticator export --to otpauth --plain codes.txt
      """)

  @OptionGroup var options: VaultOptions

  @Option(name: .customLong("to"), help: "aegis, 2fas, google or otpauth.")
  var format: VaultFormat

  @Argument(help: "A new file.")
  var file: String

  @Flag(help: "Write secrets that can be read without a password.")
  var plain = false

  @Option(help: ArgumentHelp("A file whose first line is the password of the new file.", valueName: "file"))
  var passwordFile: String?

  func run() throws {
    guard file != "-" else {
      throw Failure(
        .usage, "an export is not written to standard output",
        hint: "name a new file: it is opened again before the command reports success")
    }
    guard !plain || passwordFile == nil else {
      throw Failure(
        .usage, "--plain and --password-file exclude one another: a plain file has no password",
        hint: "leave one of them out; nothing was written")
    }
    let entries = try options.open().vault.entries
    guard !entries.isEmpty else { throw Failure(.noInput, "the vault has no entries") }
    if !plain, format == .google || format == .otpauth {
      throw Failure(
        .usage, "a file of \(format.rawValue) has no password",
        hint: "--plain writes it all the same; aegis and 2fas have one")
    }
    let password = plain ? nil : try newPassword()
    let written: VaultWriter.Written
    do throws(VaultFormatError) {
      written = try VaultWriter.write(entries, as: format, password: password, at: VaultOptions.now)
    } catch {
      throw Failure(error, at: file)
    }
    guard written.faults.count < entries.count else {
      for fault in written.faults { StandardError.write(TerminalText.printable("warning: \(fault.text)") + "\n") }
      throw Failure(
        .problems, "no entry has a place in \(format.rawValue), and nothing was written", hint: placeForAll)
    }
    try OutputFile.write(written.bytes, to: file)
    let kept = try openAgain(entries, password: password, without: Set(written.faults.map(\.place)))
    let losses = VaultWriter.losses(of: entries, in: kept)
    for fault in written.faults + losses {
      StandardError.write(TerminalText.printable("warning: \(fault.text)") + "\n")
    }
    let count = kept.entries.count
    if options.json {
      JSONOutput.print(
        Result(file: file, entries: count, missing: entries.count - count, incomplete: losses.count))
    } else {
      StandardOutput.write(TerminalText.printable("\(file)  \(count) entries, opened again") + "\n")
    }
    guard count == entries.count else {
      throw Failure(
        .problems, "\(entries.count - count) of \(entries.count) entries have no place in \(format.rawValue)",
        hint: placeForAll)
    }
  }

  /// What to do for entries that have no place in the file.
  private var placeForAll: String {
    format == .aegis ? "shorten their texts: authenticator edit NAME" : "aegis has all of them"
  }

  private struct Result: Encodable {
    let file: String
    let entries: Int
    let missing: Int
    /// The entries of which a field was left out.
    let incomplete: Int
  }

  /// Opens the file as a person would later, and looks for every entry in it.
  private func openAgain(
    _ entries: [VaultEntry], password: String?, without missing: Set<String>
  ) throws -> ImportedFile {
    let bytes = try InputFile.read(file, largest: VaultReader.largest) ?? []
    // A vault may have more entries than a file of strangers.
    let read = try? VaultReader.read(bytes, as: format, at: 0, most: max(VaultReader.mostEntries, entries.count)) {
      password ?? ""
    }
    let ids = Set(read?.entries.map(\.id) ?? [])
    let isComplete = entries.allSatisfy { ids.contains($0.codesID) || missing.contains($0.name) }
    guard let read, read.faults.isEmpty, isComplete else {
      try? FileManager.default.removeItem(atPath: file)
      throw Failure(
        .internalError, "\(file) could not be opened again, and was removed", hint: "export to another format")
    }
    return read
  }

  private func newPassword() throws(Failure) -> String {
    guard let passwordFile else {
      return try VaultOptions.askTwice("Password of the new file: ", file: "--password-file")
    }
    let password = try InputFile.firstLine(passwordFile)
    guard !password.isEmpty else { throw Failure(.usage, "the first line of \(passwordFile) is empty") }
    return password
  }
}

extension ImportFault {
  /// Both parts, for a message.
  fileprivate var text: String { "\(String(place.unicodeScalars.prefix(200))): \(reason)" }
}

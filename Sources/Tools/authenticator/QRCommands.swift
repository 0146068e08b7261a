internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation
internal import OneTimePasswords
internal import ProcessSignals
internal import QRCodes
internal import QREncoding
internal import VaultFormats

struct ScanCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "scan",
    abstract: "Add the entries of QR codes in pictures (PNG, JPEG), on the screen, or of a camera.",
    discussion: """
      A picture may have several codes; those of a store or a web page are passed by with a warning. Codes that are \
      light on dark are read too. If one code or picture cannot be read, the others still come in. --screen uses grim \
      or import (ImageMagick). A command writes a picture, or the texts of codes, to its standard output; no shell is \
      used, and it has 60 seconds. Example:
        authenticator scan screenshot.png
        authenticator scan --screen
        authenticator scan --command 'zbarcam --oneshot --raw'
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "Pictures, or - for standard input.")
  var files: [String] = []

  @Flag(help: "Read the codes that are on the screen.")
  var screen = false

  @Option(help: ArgumentHelp("A program with its arguments, for a camera.", valueName: "command"))
  var command: String?

  /// A place where codes are, and how their texts are read.
  private struct Source {
    let place: String
    let texts: () throws(Failure) -> [String]
  }

  private func sources() throws(Failure) -> [Source] {
    var sources = files.map { file in Source(place: file) { () throws(Failure) in try Self.texts(in: file) } }
    if screen {
      sources.append(Source(place: "the screen") { () throws(Failure) in try PictureSource().screenTexts() })
    }
    if let command {
      let words = try CommandWords.split(command)
      sources.append(Source(place: "--command") { () throws(Failure) in try PictureSource().texts(of: words) })
    }
    return sources
  }

  func run() throws {
    let sources = try sources()
    guard !sources.isEmpty else {
      throw Failure(.usage, "nothing to scan", hint: "authenticator scan FILE, --screen or --command COMMAND")
    }
    let now = VaultOptions.now
    var entries: [VaultEntry] = []
    var links: [String] = []
    var faults: [Failure] = []
    for source in sources {
      do throws(Failure) {
        for text in try Self.links(in: source) {
          // The parts of a migration may be in several pictures. Each is read alone first, so that one that cannot be
          // read is named with its picture, and the others come in.
          if EntryLink.isMigration(text) {
            do throws(Failure) {
              _ = try Self.migration([text], at: source.place, now)
              links.append(text)
            } catch {
              faults.append(error)
            }
          } else {
            do throws(EntryLink.Fault) { entries.append(try EntryLink.entry(text, at: now)) } catch {
              faults.append(Failure(error, at: source.place))
            }
          }
        }
      } catch {
        faults.append(error)
      }
    }
    if !links.isEmpty {
      do throws(Failure) {
        let migration = try Self.migration(links, at: "migration", now)
        entries += migration.entries
        faults += migration.faults.map { Failure(.badData, "migration: \($0.place): \($0.reason)") }
        faults += migration.missingParts.map { Failure(.badData, "part \($0) of the migration is missing") }
      } catch {
        faults.append(error)
      }
    }
    // A migration may have no entry, which is no fault of it.
    guard !entries.isEmpty || !faults.isEmpty else {
      throw Failure(.badData, "there is no entry in \(sources.map(\.place).joined(separator: ", "))")
    }
    faults += SharedSecrets.faults(in: entries).map { Failure(.badData, $0) }
    let reasons = faults.map(\.message).joined(separator: "; ")
    guard !entries.isEmpty else {
      throw Failure(Self.status(of: faults), reasons, hint: faults.compactMap(\.hint).first)
    }
    VaultOptions.warn(of: entries)
    let additions = try options.change(makesVault: true) { vault in entries.map { ($0, vault.add($0, at: now)) } }
    Additions(additions).report(json: options.json)
    guard faults.isEmpty else { throw Failure(.badData, reasons, hint: "the others came in") }
  }

  /// The exit code of a scan that has found nothing: the one that all of `faults` have, otherwise 65.
  private static func status(of faults: [Failure]) -> Status {
    let statuses = Set(faults.map(\.status))
    return statuses.count == 1 ? statuses.first ?? .badData : .badData
  }

  /// The parts of a migration, of which each link has one.
  private static func migration(_ links: [String], at place: String, _ now: Int64) throws(Failure) -> ImportedFile {
    do {
      return try VaultReader.read(Array(links.joined(separator: "\n").utf8), as: .google, at: now) { "" }
    } catch let error as VaultFormatError {
      throw Failure(error, at: place)
    } catch {
      throw Failure(.badData, "\(place): \(error.localizedDescription)")
    }
  }

  private static func texts(in file: String) throws(Failure) -> [String] {
    try PictureReader().texts(in: InputFile.read(file, largest: QRReader.largest) ?? [], at: file)
  }

  /// The links of authenticators in a picture. Other codes are passed by with a warning.
  private static func links(in source: Source) throws(Failure) -> [String] {
    let (texts, file) = (try source.texts(), source.place)
    let links = texts.filter(EntryLink.isLink)
    let others = texts.filter { !EntryLink.isLink($0) }
    if links.isEmpty, let first = others.first {
      throw Failure(.badData, "\(file): not an otpauth:// URI: \(subject(of: first))")
    }
    for text in others {
      let warning = "warning: \(file): a QR code that is not of an authenticator is passed by: \(subject(of: text))"
      StandardError.write(TerminalText.printable(warning) + "\n")
    }
    return links
  }

  /// What a foreign code is, without the rest of it, which may be a password.
  private static func subject(of text: String) -> String {
    let parts = text.unicodeScalars.prefix(64).split(separator: ":", maxSplits: 1).map { String($0) }
    guard parts.count == 2, let scheme = parts.first, scheme.utf8.count <= 16,
      scheme.utf8.allSatisfy({ (0x30...0x7A).contains($0) })
    else { return "a text" }
    guard ["http", "https"].contains(scheme.lowercased()) else { return "a code \(scheme):" }
    return "\(scheme)://\(parts[1].drop { $0 == "/" }.prefix { !"/?#@".contains($0) })"
  }
}

struct QRCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "qr",
    abstract: "Show the QR code of an entry, for another authenticator.",
    discussion: """
      The code has the secret: with a picture of it, others can make codes. Without a file, --json prints the link that \
      the code stands for. Example:
        authenticator qr github
        authenticator qr github --output code.png
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "The name of the entry, or an unambiguous part of it.")
  var name: String

  @Option(help: ArgumentHelp("A new file, .png or .svg, instead of the terminal.", valueName: "file"))
  var output: String?

  @Flag(help: "For a terminal that is dark on light.")
  var light = false

  func run() throws {
    let entry = try EntryName.find(name, in: try options.open().vault.entries)
    guard let uri = entry.uri else {
      throw Failure(.usage, "no URI describes codes of the kind of \(entry.name.debugDescription)")
    }
    // What `scan` and other authenticators do not read is no use in a picture.
    guard (try? EntryLink.entry(uri.text, at: 0))?.id == entry.codesID else {
      throw Failure(
        .usage, "no link describes the codes of \(entry.name.debugDescription)",
        hint: "`authenticator export --to aegis` has them")
    }
    let code: QRCode
    do throws(QRCodeError) { code = try QRCode(uri.text) } catch { throw Failure(.badData, "\(entry.name): \(error)") }
    guard let output else {
      if options.json {
        JSONOutput.print(["uri": uri.text])
      } else {
        StandardOutput.write(code.terminalText(isInverted: light))
      }
      return
    }
    switch output.lowercased().suffix(4) {
    case ".png": try OutputFile.write(code.png(), to: output)
    case ".svg": try OutputFile.write(Array(code.svg().utf8), to: output)
    default: throw Failure(.usage, "--output \(output): the name ends with .png or .svg")
    }
    if options.json {
      JSONOutput.print(["file": output])
    } else {
      StandardOutput.write(TerminalText.printable(output) + "\n")
    }
  }
}

/// Files with secrets that the user asked for.
enum OutputFile {
  /// Writes `bytes` to a file of mode 0600, which is there complete or not at all. Never replaces one.
  static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
    // Before a secret is written at all.
    var isNew = !FileManager.default.fileExists(atPath: path) && !VaultFolder.isLink(path)
    do {
      if isNew {
        let draft = try TemporaryFile(for: path)
        try draft.withDescriptor { descriptor in
          try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: bytes)
        }
        isNew = try place(draft)
      }
    } catch let error as TemporaryFile.WriteError {
      throw Failure(.cannotCreate, "cannot write \(path): \(String(cString: strerror(error.number)))")
    } catch {
      throw Failure(.cannotCreate, "cannot write \(path): \(error.localizedDescription)")
    }
    guard isNew else {
      throw Failure(.cannotCreate, "\(path) is there already", hint: "name another file, or remove it")
    }
  }

  /// Gives the draft its name, unless a file got it meanwhile. Where the file system has no second names, as FAT and some
  /// of FUSE, such a file is replaced.
  private static func place(_ draft: TemporaryFile) throws -> Bool {
    do throws(TemporaryFile.WriteError) {
      return try draft.placeIfAbsent()
    } catch {
      guard [EPERM, EOPNOTSUPP, ENOSYS].contains(error.number) else { throw error }
      try draft.place()
      return true
    }
  }
}

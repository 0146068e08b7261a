internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import CommandSupport
internal import Foundation
internal import OneTimePasswords
internal import ProcessSignals
internal import QRCodes
internal import QREncoding
internal import VaultFormats

struct ScanCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "scan",
    abstract: "Add the entries of QR codes in pictures (PNG, JPEG).",
    discussion: """
      A picture may have several codes. If one picture cannot be read, the others still come in. Example:
        authenticator scan screenshot.png
      """)

  @OptionGroup var options: VaultOptions

  @Argument(help: "Pictures, or - for standard input.")
  var files: [String]

  func run() throws {
    var entries: [VaultEntry] = []
    var links: [String] = []
    var faults: [String] = []
    for file in files {
      do throws(Failure) {
        for text in try Self.texts(in: file) {
          // The parts of a migration may be in several pictures.
          if text.lowercased().hasPrefix("otpauth-migration:") {
            links.append(text)
          } else {
            entries.append(try Self.entry(text, in: file))
          }
        }
      } catch {
        faults.append(error.message)
      }
    }
    if !links.isEmpty {
      let bytes = Array(links.joined(separator: "\n").utf8)
      let migration = try VaultReader.read(bytes, as: .google, at: VaultOptions.now) { "" }
      entries += migration.entries
      faults += migration.faults.map { "migration: \($0.place): \($0.reason)" }
      faults += migration.missingParts.map { "part \($0) of the migration is missing" }
    }
    guard !entries.isEmpty else {
      throw Failure(.badData, faults.joined(separator: "; "), hint: "a picture of the whole code, sharp and straight")
    }
    for warning in entries.compactMap(\.weakness) { StandardError.write("warning: \(warning)\n") }
    let additions = try options.change(makesVault: true) { vault in
      entries.map { ($0, vault.add($0, at: VaultOptions.now)) }
    }
    Additions(additions).report(json: options.json)
    guard faults.isEmpty else { throw Failure(.badData, faults.joined(separator: "; "), hint: "the others came in") }
  }

  static func texts(in file: String) throws(Failure) -> [String] {
    let bytes = try InputFile.read(file, largest: QRReader.largest) ?? []
    do throws(QRReaderError) { return try QRReader.texts(in: bytes) } catch {
      throw Failure(.badData, "\(file): \(error)")
    }
  }

  private static func entry(_ text: String, in file: String) throws(Failure) -> VaultEntry {
    do throws(OTPAuthError) { return VaultEntry(try OTPAuthURI(text), at: VaultOptions.now) } catch {
      throw Failure(error, at: file)
    }
  }
}

struct QRCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "qr",
    abstract: "Show the QR code of an entry, for another authenticator.",
    discussion: """
      The code has the secret: with a picture of it, others can make codes. Example:
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
    let code: QRCode
    do throws(QRCodeError) { code = try QRCode(uri.text) } catch { throw Failure(.badData, "\(entry.name): \(error)") }
    guard let output else {
      StandardOutput.write(code.terminalText(isInverted: light))
      return
    }
    switch output.lowercased().suffix(4) {
    case ".png": try OutputFile.write(code.png(), to: output)
    case ".svg": try OutputFile.write(Array(code.svg().utf8), to: output)
    default: throw Failure(.usage, "--output \(output): the name ends with .png or .svg")
    }
    if options.json { JSONOutput.print(["file": output]) } else { StandardOutput.write("\(output)\n") }
  }
}

/// Files with secrets that the user asked for.
enum OutputFile {
  /// Writes `bytes` to a file of mode 0600, which is there complete or not at all. Never replaces one.
  static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
    guard !FileManager.default.fileExists(atPath: path) else {
      throw Failure(.cannotCreate, "\(path) is there already", hint: "name another file, or remove it")
    }
    do {
      let draft = try TemporaryFile(for: path)
      try draft.withDescriptor { descriptor in
        try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: bytes)
      }
      try draft.place()
    } catch let error as TemporaryFile.WriteError {
      throw Failure(.cannotCreate, "cannot write \(path): \(String(cString: strerror(error.number)))")
    } catch {
      throw Failure(.cannotCreate, "cannot write \(path): \(error.localizedDescription)")
    }
  }
}

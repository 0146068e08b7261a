internal import ArgumentParser
internal import Cryptography
internal import Commands
internal import GateRuntime

struct CAExportCommand: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument { case pem, der, p12, mobileconfig }

  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes a client's certificate and key in another format.",
    discussion: """
      Formats: pem has the certificate and key in one file, for example for curl. der has only the certificate. p12 \
      has both and the CA certificate under a password, for an app bundle. mobileconfig is a profile that installs the \
      CA and the identity on an iPhone or Mac. The password is the first line of --password-file, or is asked for on \
      the terminal. For an app that uses an empty password, name an empty file.

      p12 and mobileconfig are encrypted with AES-256 and SHA-256. If an Apple system reports "MAC verification \
      failed" at the import, export again with --legacy.

      Example:

        sallyport ca export --format p12 --password-file /dev/null
      """)

  @Argument(help: "The client's name.")
  var client = "client"

  @Option(help: "The format: pem, der, p12 or mobileconfig.")
  var format: Format

  @OptionGroup var options: CAOptions
  @OptionGroup var replacement: CAReplacement

  @Option(help: ArgumentHelp("The output file; the default is NAME.FORMAT in the CA's folder.", valueName: "file"))
  var output: String?

  @Option(help: ArgumentHelp("A file whose first line is the password.", valueName: "file"))
  var passwordFile: String?

  @Flag(
    help: """
      Encrypt p12 and mobileconfig with Triple DES and SHA-1, for systems that report "MAC verification failed" at the \
      import, and software older than 2022.
      """)
  var legacy = false

  func validate() throws {
    // The file would have the key in clear text, although a password was named.
    guard ![.pem, .der].contains(format) || passwordFile == nil && !legacy else {
      throw ValidationError(
        "--password-file and --legacy are for p12 and mobileconfig: a \(format.rawValue) file is not encrypted")
    }
  }

  func run() throws {
    let form = try chosenForm()
    try options.report { () throws(ClientAuthorityError) in
      [try options.authority.export(client, as: form, to: output, isReplacing: replacement.force)]
    }
    if form.isForNewerSystems {
      Console.tell(
        .hint(
          "if the import reports \"MAC verification failed\", export again with --legacy (Triple DES and SHA-1)"))
    }
  }

  private func chosenForm() throws(Failure) -> ClientExport {
    let encryption: PKCS12.Encryption = legacy ? .legacy : .modern
    switch format {
    case .pem: return .pem
    case .der: return .der
    case .p12: return .p12(password: try password(), encryption)
    case .mobileconfig: return .mobileconfig(password: try password(), encryption)
    }
  }

  /// Reads the password from a file or the terminal, never from the command line, which every user of the machine can
  /// read.
  private func password() throws(Failure) -> String {
    guard let passwordFile else { return try PasswordPrompt.ask("Password of the exported file") }
    let bytes = try InputFile(path: passwordFile).read()
    let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
    guard let password = String(validating: line, as: UTF8.self), !line.contains(0) else {
      throw Failure(
        .usage, "--password-file \(passwordFile): not a line of text", hint: "the first line is the password")
    }
    return password
  }
}

extension ClientExport {
  /// Whether the file is encrypted in a way that some systems do not read.
  fileprivate var isForNewerSystems: Bool {
    switch self {
    case .pem, .der: false
    case .p12(_, let encryption), .mobileconfig(_, let encryption): encryption == .modern
    }
  }
}

internal import ArgumentParser
internal import ClientAuthority
internal import Cryptography
internal import GateRuntime

struct CAExportCommand: ParsableCommand {
  enum Format: String, CaseIterable, ExpressibleByArgument { case pem, der, p12, mobileconfig }

  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes a client's certificate and key in another form.",
    discussion: """
      pem is the certificate and its key in one file, for curl and the like; der the certificate alone; p12 both with the \
      authority under a password, for an app's bundle; mobileconfig a profile that installs the authority and the \
      identity on an iPhone or a Mac. The password is the first line of --password-file, or is asked for; the file of \
      an app that reads it with an empty password is exported with an empty file.

      Example:

        sallyport ca export --format p12 --password-file /dev/null
      """)

  @Argument(help: "The client's name.")
  var client = "client"

  @Option(help: "The form: pem, der, p12 or mobileconfig.")
  var format: Format

  @OptionGroup var options: CAOptions

  @Option(help: ArgumentHelp("Where to; NAME.FORMAT in the authority's folder unless given.", valueName: "file"))
  var output: String?

  @Option(help: ArgumentHelp("A file whose first line is the password.", valueName: "file"))
  var passwordFile: String?

  @Flag(help: "Encrypt with Triple DES and SHA-1, for readers from before 2022.")
  var legacy = false

  func run() throws {
    let form: ClientExport
    do throws(SallyportError) {
      form = try chosenForm()
    } catch {
      throw error.told()
    }
    try options.report { () throws(ClientAuthorityFault) in
      [try options.authority.export(client, as: form, to: output, isReplacing: options.force)]
    }
  }

  private func chosenForm() throws(SallyportError) -> ClientExport {
    let encryption: PKCS12.Encryption = legacy ? .legacy : .modern
    switch format {
    case .pem: return .pem
    case .der: return .der
    case .p12: return .p12(password: try password(), encryption)
    case .mobileconfig: return .mobileconfig(password: try password(), encryption)
    }
  }

  /// Never from the command line, where every user of the machine could read it.
  private func password() throws(SallyportError) -> String {
    guard let passwordFile else { return try PasswordPrompt.ask("Password of the exported file") }
    let bytes = try InputFile(path: passwordFile).read()
    let line = bytes.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
    guard let password = String(validating: line, as: UTF8.self), !line.contains(0) else {
      throw SallyportError(
        .usage, error: "--password-file \(passwordFile): not a line of text", hint: "the first line is the password")
    }
    return password
  }
}

internal import ArgumentParser
internal import ByteCoding
internal import Cryptography
internal import Commands
internal import GateRuntime

/// The commands of a client CA for debug builds.
struct CACommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ca",
    abstract: "Creates a CA and issues client certificates for debug builds.",
    discussion: """
      Keeps your own CA in a folder: ca.pem and ca.key, and NAME.crt and NAME.key for each client. Private key files \
      have mode 0600. A client's key passes every gate that trusts the CA: protect these files, and ship exports only \
      in debug builds.

      Example:

        sallyport ca init && sallyport ca issue && sallyport ca export --format p12
      """,
    subcommands: [CAInitCommand.self, CAIssueCommand.self, CAExportCommand.self, CARevokeCommand.self])
}

/// The location of the CA, and how commands report what they write to it.
struct CAOptions: ParsableArguments {
  @Option(help: "The folder of the CA.")
  var folder = "config/client-ca"

  @Flag(help: "Print the paths of the created files as one line of JSON.")
  var json = false

  var authority: ClientAuthority { ClientAuthority(folder: folder) }

  /// Runs `make` and prints the paths that it returns.
  func report(_ make: () throws(ClientAuthorityError) -> [String]) throws {
    do throws(ClientAuthorityError) {
      let files = try make()
      guard json else { return Console.print(files.joined(separator: "\n")) }
      Console.print("{\"files\":[" + files.map { JSONText.quote($0) }.joined(separator: ",") + "]}")
    } catch {
      throw Failure(Self.status(of: error), error.description, hint: error.hint)
    }
  }

  private static func status(of fault: ClientAuthorityError) -> Status {
    switch fault {
    case .exists: .cannotCreate
    case .system(.read, _, _): .noInput
    case .system: .cannotCreate
    case .absent: .noInput
    case .malformed, .foreign: .badData
    case .unusableName: .usage
    case .cryptography: .internalError
    }
  }
}

/// What becomes of files that are there already, for commands that create files.
struct CAReplacement: ParsableArguments {
  @Flag(help: "Replace existing files.")
  var force = false
}

/// The subject and validity period of a certificate.
struct CASubject: ParsableArguments {
  @Option(help: ArgumentHelp("The organization in the subject.", valueName: "text"))
  var organization: String?

  @Option(help: ArgumentHelp("How long the certificate is valid.", valueName: "days"))
  var days: Int64 = 3650

  func validate() throws {
    guard (1...36500).contains(days) else { throw ValidationError("--days must be 1 to 36500.") }
    try Self.requireLength(of: organization, "--organization")
  }

  /// Requires that a value of the subject has the length that RFC 5280 (appendix A.1) gives to common names and
  /// organizations. Some readers refuse certificates with other values.
  static func requireLength(of value: String?, _ name: String) throws {
    guard let value, !(1...64).contains(value.unicodeScalars.count) else { return }
    throw ValidationError("\(name) must have 1 to 64 characters.")
  }

  func name(_ commonName: String) -> DistinguishedName {
    var name = DistinguishedName(.commonName(commonName))
    if let organization { name.attributes.append(.organization(organization)) }
    return name
  }
}

struct CAInitCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Creates the CA.",
    discussion: """
      To use it, add to the gate's configuration: debug_mtls: { client_ca_file: config/client-ca/ca.pem }

      With --force, an existing crl.pem becomes an empty list of the new CA.

      Example:

        sallyport ca init --organization YourOrg
      """)

  @OptionGroup var options: CAOptions
  @OptionGroup var replacement: CAReplacement
  @OptionGroup var subject: CASubject

  @Option(help: ArgumentHelp("The common name of the CA.", valueName: "text"))
  var commonName = "Debug CA"

  func validate() throws { try CASubject.requireLength(of: commonName, "--common-name") }

  func run() throws {
    try options.report { () throws(ClientAuthorityError) in
      try options.authority.make(
        subject.name(commonName), days: subject.days, at: .now(), isReplacing: replacement.force)
    }
  }
}

struct CAIssueCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "issue",
    abstract: "Issues a client's certificate.",
    discussion: """
      It expires no later than the CA. With --force, a certificate that is replaced is revoked if crl.pem exists. To admit \
      only some subjects, set debug_mtls.allow_subjects in the gate.

      Example:

        sallyport ca issue alice --common-name "Alice's simulator" --days 365
      """)

  @Argument(help: "The client's name; its files are named after it.")
  var client = "client"

  @OptionGroup var options: CAOptions
  @OptionGroup var replacement: CAReplacement
  @OptionGroup var subject: CASubject

  @Option(help: ArgumentHelp("The common name of the client; the default is its name.", valueName: "text"))
  var commonName: String?

  func validate() throws {
    try CASubject.requireLength(of: commonName, "--common-name")
    if commonName == nil && client.unicodeScalars.count > 64 {
      throw ValidationError("A client's name of more than 64 characters needs a --common-name.")
    }
  }

  func run() throws {
    try options.report { () throws(ClientAuthorityError) in
      try options.authority.issue(
        client, subject.name(commonName ?? client), days: subject.days, at: .now(), isReplacing: replacement.force)
    }
  }
}

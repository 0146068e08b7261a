internal import ArgumentParser
internal import ByteCoding
internal import ClientAuthority
internal import Cryptography
internal import GateRuntime

/// An authority of client certificates for debug builds.
struct CACommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ca",
    abstract: "Makes and issues client certificates for debug builds.",
    discussion: """
      An authority of one's own, in a folder: ca.pem and ca.key, and NAME.crt and NAME.key for each client. Private keys \
      are in files of mode 0600. A gate that names the authority admits every holder of a client's key: keep both, and \
      put what is exported into debug builds alone.

      Example:

        sallyport ca init && sallyport ca issue && sallyport ca export --format p12
      """,
    subcommands: [CAInitCommand.self, CAIssueCommand.self, CAExportCommand.self])
}

/// Where an authority is, and how commands treat it.
struct CAOptions: ParsableArguments {
  @Option(help: "The authority's folder.")
  var folder = "config/client-ca"

  @Flag(help: "Replace files that are there already.")
  var force = false

  @Flag(help: "Write the paths of what was made as one line of JSON.")
  var json = false

  var authority: ClientAuthority { ClientAuthority(folder: folder) }

  /// Runs `make`, and says which files there are now.
  func report(_ make: () throws(ClientAuthorityFault) -> [String]) throws {
    do throws(ClientAuthorityFault) {
      let files = try make()
      guard json else { return Console.print(files.joined(separator: "\n")) }
      Console.print("{\"files\":[" + files.map { JSONText.quote($0) }.joined(separator: ",") + "]}")
    } catch {
      throw SallyportError(Self.status(of: error), error: error.description, hint: error.hint).told()
    }
  }

  private static func status(of fault: ClientAuthorityFault) -> SallyportError.Status {
    switch fault {
    case .exists: .cannotCreate
    case .system(let action, _, _): action == "read" ? .noInput : .cannotCreate
    case .absent: .noInput
    case .malformed: .badData
    case .unusableName: .usage
    case .cryptography: .software
    }
  }
}

/// What a certificate says of its subject and its life.
struct CASubject: ParsableArguments {
  @Option(help: ArgumentHelp("The organization in the subject.", valueName: "text"))
  var organization: String?

  @Option(help: ArgumentHelp("How long the certificate is valid.", valueName: "days"))
  var days: Int64 = 3650

  func validate() throws {
    guard (1...36500).contains(days) else { throw ValidationError("--days is 1 to 36500.") }
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
    abstract: "Makes the authority.",
    discussion: """
      Name its certificate in the gate's configuration: debug_mtls: { client_ca_file: config/client-ca/ca.pem }.

      Example:

        sallyport ca init --organization YourOrg
      """)

  @OptionGroup var options: CAOptions
  @OptionGroup var subject: CASubject

  @Option(help: ArgumentHelp("The common name of the authority.", valueName: "text"))
  var commonName = "Debug CA"

  func run() throws {
    try options.report { () throws(ClientAuthorityFault) in
      try options.authority.make(
        subject.name(commonName), days: subject.days, at: .now(), isReplacing: options.force)
    }
  }
}

struct CAIssueCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "issue",
    abstract: "Issues a client's certificate.",
    discussion: """
      It ends with the authority's at the latest. allow_subjects of the gate's debug_mtls lets in single subjects.

      Example:

        sallyport ca issue alice --common-name "Alice's simulator" --days 365
      """)

  @Argument(help: "The client's name, for its files.")
  var client = "client"

  @OptionGroup var options: CAOptions
  @OptionGroup var subject: CASubject

  @Option(help: ArgumentHelp("The common name of the client; its name unless given.", valueName: "text"))
  var commonName: String?

  func run() throws {
    try options.report { () throws(ClientAuthorityFault) in
      try options.authority.issue(
        client, subject.name(commonName ?? client), days: subject.days, at: .now(), isReplacing: options.force)
    }
  }
}

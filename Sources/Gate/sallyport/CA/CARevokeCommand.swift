internal import ArgumentParser
internal import ByteCoding
internal import Cryptography

/// Revokes certificates of clients.
struct CARevokeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Revokes clients' certificates.",
    discussion: """
      Adds the certificates to the list crl.pem in the folder of the CA; without a name, makes the list. A gate whose \
      configuration names the list closes their sessions and refuses them, within seconds: \
      debug_mtls: { client_ca_file: config/client-ca/ca.pem, crl_file: config/client-ca/crl.pem }

      Example:

        sallyport ca revoke alice
      """)

  @Argument(help: ArgumentHelp("The clients' names.", valueName: "client"))
  var clients: [String] = []

  @OptionGroup var options: CAOptions

  func run() throws {
    try options.report { () throws(ClientAuthorityError) in try options.authority.revoke(clients, at: .now()) }
  }
}

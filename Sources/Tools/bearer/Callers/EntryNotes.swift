internal import Foundation
internal import OIDCClient

/// What the keys of an entry mean for its commands, for `bearer providers check`.
enum EntryNotes {
  /// One line for each key that is not as usual.
  static func lines(of provider: IdentityProvider, _ use: ProviderUse) -> [String] {
    let variations = provider.variations
    var lines: [String] = []
    func note(_ key: String, _ text: String, if isSet: Bool = true) { if isSet { lines.append("\(key): \(text)") } }
    if let url = variations.discoveryURL { note("discovery_url", "metadata is at \(url.absoluteString)") }
    note("grant", "tokens are those of the client itself; no person signs in", if: provider.isOfMachine)
    note(
      "authentication", "the certificate of the connection proves the client",
      if: provider.authentication == .tlsClientAuth)
    if let source = use.attestations {
      note("attestation_command", "\(source.command[0]) attests the client, with the key in \(source.keyFile)")
    }
    if let algorithm = variations.assertionAlgorithm {
      note("private_key_algorithm", "client assertions are signed with \(algorithm.rawValue)")
    }
    note("par", "the request of each sign-in is pushed", if: variations.pushing == .required)
    for (key, names, text) in [
      ("parameters", variations.parameters.keys.sorted(), "in the request that begins a sign-in"),
      ("token_parameters", variations.tokenParameters.keys.sorted(), "in each request for tokens"),
      ("trusted_audiences", variations.trustedAudiences, "may be in ID tokens next to the client"),
    ] where !names.isEmpty {
      note(key, "\(names.joined(separator: ", ")) \(text)")
    }
    if let account = use.account { note("account", "\(account) is that of commands without --account") }
    if !use.gitHosts.isEmpty {
      note("git_hosts", "\(use.gitHosts.joined(separator: ", ")) get the token from Git, as \(use.gitUsername)")
    }
    return lines
  }
}

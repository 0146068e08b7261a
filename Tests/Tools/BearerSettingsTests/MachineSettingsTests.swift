import bearer
import OIDCClient
import TestSupport
import Testing

@Suite("Machine accounts and client certificates in bearer.yaml")
struct MachineSettingsTests {
  private static let entry = """
    issuer: https://a.example
    client_id: c
    grant: client_credentials

    """

  @Test func `a certificate and its key arrive in the provider, which needs no scope`() async throws {
    let (certificate, key) = try await OpenSSL.pair()
    let files = NamedFiles().with("c.pem", certificate, isPrivate: false).with("c.key", key)
    let entry = Self.entry + "authentication: tls_client_auth\ncert_file: c.pem\nkey_file: c.key"
    #expect(try files.faults(provider: entry) == [])
    let lines = entry.split(separator: "\n").joined(separator: ", ")
    let provider = try #require(try files.read("providers: { work: { \(lines) } }").standard)
    #expect(provider.isOfMachine && provider.scopes == [] && provider.authentication == .tlsClientAuth)
    let found = try #require(provider.trust.clientCertificate)
    #expect(found.chain == certificate && found.key == key && found.thumbprint?.utf8.count == 43)
    #expect(found.chainFile?.hasSuffix("/c.pem") == true && found.keyFile?.hasSuffix("/c.key") == true)
    // Neither the text nor a dump of the value contains the key.
    var text = "\(found)"
    dump(provider, to: &text)
    #expect(!text.contains("PRIVATE"))
  }

  @Test func `what a certificate or its key cannot be is one fault, with its reason`() async throws {
    let (certificate, key) = try await OpenSSL.pair()
    let other = try await OpenSSL.privateKey()
    func faults(_ chain: String, _ key: String, isPrivate: Bool = true) throws -> [String] {
      try NamedFiles().with("c.pem", chain).with("c.key", key, isPrivate: isPrivate).faults(
        provider: Self.entry + "authentication: tls_client_auth\ncert_file: c.pem\nkey_file: c.key")
    }
    #expect(try faults(certificate, key) == [])
    #expect(try faults(certificate, other) == ["8:15: key_file: is not the key of the first certificate of cert_file"])
    #expect(try faults(certificate, "x") == ["8:15: key_file: is not a private key in PEM"])
    #expect(
      try faults(certificate, key.replacing("PRIVATE KEY", with: "ENCRYPTED PRIVATE KEY"))
        == ["8:15: key_file: must not be encrypted"])
    #expect(try faults("x", key) == ["7:16: cert_file: contains no certificate in PEM, or a malformed one"])
    #expect(
      try faults(String(repeating: certificate, count: 11), key)
        == ["7:16: cert_file: contains more than 10 certificates"])
    let exposed = try faults(certificate, key, isPrivate: false)
    #expect(exposed.count == 1 && exposed[0].contains("key_file: group or others can read"), "\(exposed)")
  }

  @Test(arguments: [
    (
      "",
      [
        "5:12: grant: client_credentials needs a client that authenticates: basic, post, private_key_jwt, tls_client_auth or attestation"
      ]
    ),
    ("authentication: tls_client_auth", ["6:21: authentication: tls_client_auth needs cert_file and key_file"]),
    (
      "client_secret_file: s\npassword_grant: true", ["7:21: password_grant: is for people, not for client_credentials"]
    ),
    (
      "client_secret_file: s\nredirect_uri: http://127.0.0.1/",
      ["7:19: redirect_uri: is not used with client_credentials"]
    ),
    ("client_secret_file: s\nkey_file: s", ["7:15: key_file: needs cert_file"]),
    (
      "client_secret_file: s\ncert_file: missing",
      [
        "7:16: cert_file: needs key_file",
        "7:16: cert_file: cannot read /etc/b/missing: No such file or directory (ENOENT)",
      ]
    ),
    (
      "authentication: tls_client_auth\ncert_file: x\nkey_file: s",
      ["7:16: cert_file: cannot read /etc/b/x: No such file or directory (ENOENT)"]
    ),
    ("client_secret_file: s\ngrants: user", ["7:5: grants: unknown key (did you mean grant)"]),
  ])
  func `what does not fit together is one fault`(lines: String, faults: [String]) throws {
    #expect(try NamedFiles().with("s", "s3cret").faults(provider: Self.entry + lines) == faults)
  }

  @Test func `an unknown grant names the ones that exist`() throws {
    #expect(
      try NamedFiles().faults(provider: "issuer: https://a.example\nclient_id: c\ngrant: client_credential")
        == [
          "5:12: grant: \"client_credential\" is not one of user, client_credentials (did you mean client_credentials)"
        ])
  }

  @Test func `a person and a machine account are no fallbacks of one another`() throws {
    func faults(_ own: String, _ other: String) throws -> [String] {
      try NamedFiles().with("s", "secret").faults(
        """
        providers:
          a: { issuer: "https://a.example", client_id: c, fallbacks: [b]\(own) }
          b: { issuer: "https://b.example", client_id: c\(other) }

        """)
    }
    let machine = ", client_secret_file: s, grant: client_credentials"
    let reason = "a person and a machine account are no fallbacks of one another"
    #expect(
      try faults("", machine) == ["2:63: providers.a.fallbacks[0]: has the grant client_credentials: \(reason)"])
    #expect(try faults(machine, "") == ["2:63: providers.a.fallbacks[0]: has the grant user: \(reason)"])
    #expect(try faults(machine, machine) == [])
    #expect(try faults("", ", grant: user") == [])
  }
}

@Suite("Attested clients in bearer.yaml")
struct AttestedSettingsTests {
  private static let entry = """
    issuer: https://a.example
    client_id: c
    authentication: attestation

    """

  @Test func `a program and its key file arrive in the use, and the proof in the provider`() throws {
    let entry =
      Self.entry + "attestation_command: [attest, token]\nattestation_key_file: k.pem\nattestation_proof: dpop"
    #expect(try NamedFiles().faults(provider: entry) == [])
    let lines = entry.split(separator: "\n").joined(separator: ", ")
    let settings = try NamedFiles().read("providers: { work: { \(lines) } }")
    #expect(settings.standard?.authentication == .attestation(.dpop))
    let source = try #require(settings.use(of: "work").attestations)
    #expect(source.command == ["attest", "token"] && source.keyFile.hasSuffix("/k.pem"))
  }

  @Test(arguments: [
    (
      "",
      [
        "5:21: authentication: attestation needs attestation_command",
        "5:21: authentication: attestation needs attestation_key_file",
      ]
    ),
    (
      "attestation_command: []\nattestation_key_file: k.pem",
      ["6:5: attestation_command: must be a program and its arguments, at most 64 words"]
    ),
    (
      "attestation_command: ['']\nattestation_key_file: k.pem",
      ["6:5: attestation_command: must be a program and its arguments, at most 64 words"]
    ),
    (
      "attestation_command: [a]\nattestation_key_file: k.pem\nattestation_proof: dpop\ndpop: off",
      ["8:24: attestation_proof: dpop needs dpop: auto or required"]
    ),
    (
      "attestation_command: [a]\nattestation_key_file: k\nassertion_audience: token_endpoint",
      ["8:25: assertion_audience: is not used with attestation, whose proofs are for the issuer"]
    ),
    (
      "attestation_command: [a]\nattestation_key_file: ''",
      ["7:27: attestation_key_file: value is empty"]
    ),
  ])
  func faults(more: String, expected: [String]) throws {
    #expect(try NamedFiles().faults(provider: Self.entry + more) == expected)
  }

  @Test func `a provider without discovery needs its issuer, which the proofs are for`() throws {
    let entry = """
      type: oauth2
      token_endpoint: https://a.example/token
      client_id: c
      authentication: attestation
      attestation_command: [a]
      attestation_key_file: k

      """
    #expect(
      try NamedFiles().faults(provider: entry)
        == ["6:21: authentication: attestation needs issuer: its proofs are for that"])
    #expect(try NamedFiles().faults(provider: entry + "issuer: https://a.example") == [])
    #expect(try NamedFiles().faults(provider: entry + "attestation_proof: dpop") == [])
  }

  @Test func `an empty list of pins is no way to pin nothing`() throws {
    #expect(
      try NamedFiles().faults(provider: "issuer: https://a.example\nclient_id: c\npins: []")
        == ["5:5: pins: empty list; leave it out for no pins"])
  }

  @Test func `the keys of an attestation mean nothing with another authentication`() throws {
    let faults = try NamedFiles().faults(
      provider: "issuer: https://a.example\nclient_id: c\nattestation_command: [a]\nattestation_proof: pop")
    #expect(faults.count == 2 && faults.allSatisfy { $0.hasSuffix("is only used with authentication attestation") })
  }
}

import Testing

@testable import Settings

@Suite("The settings of certificates by ACME")
struct ACMESettingsTests {
  @Test("Names alone are enough: Let's Encrypt, the system's CAs, no binding")
  func least() throws {
    let workspace = try Workspace()
    let settings = try workspace.load(
      yaml: "tls: { acme: { domains: [Gate.example.com, b.example] } }", environment: [:])
    let acme = try #require(settings.tls.acme)
    #expect(acme.domains == ["gate.example.com", "b.example"])
    #expect(acme.directory == "https://acme-v02.api.letsencrypt.org/directory")
    #expect(acme.email == nil && acme.caFile == nil && acme.binding == nil && settings.tls.files == [])
    #expect(
      try workspace.load(environment: ["SALLYPORT_TLS__ACME__DOMAINS__0": "a.example"]).tls.acme?.domains
        == ["a.example"])
  }

  @Test("Everything is read")
  func everything() throws {
    let workspace = try Workspace()
    try workspace.write("zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG4\n", to: "eab.key", permissions: 0o600)
    let yaml = """
      tls:
        acme:
          domains: [gate.example.com, 192.0.2.1, '2001:DB8::1']
          email: ops@example.com
          directory: https://acme.internal:14000/dir
          profile: shortlived
          ca_file: cert.pem
          eab: { key_id: kid-1, key_file: eab.key }
      """
    let acme = try #require(try workspace.load(yaml: yaml, environment: [:]).tls.acme)
    #expect(acme.email == "ops@example.com" && acme.directory == "https://acme.internal:14000/dir")
    #expect(acme.domains == ["gate.example.com", "192.0.2.1", "2001:db8::1"] && acme.profile == "shortlived")
    #expect(acme.caFile == workspace.folder + "/cert.pem")
    #expect(acme.binding == .init(keyID: "kid-1", keyFile: workspace.folder + "/eab.key"))
  }

  @Test("HTTP-01 listens at port 80 of all addresses unless another one is given; addresses may use it")
  func http() throws {
    let workspace = try Workspace()
    for (further, address) in [("", ("::", 80)), (", http_listen: '127.0.0.1:8080'", ("127.0.0.1", 8080))] {
      let yaml = "tls: { acme: { domains: [a.example, 192.0.2.1], challenge: http-01\(further) } }"
      let acme = try #require(try workspace.load(yaml: yaml, environment: [:]).tls.acme)
      #expect(acme.httpListen == .init(address: address.0, port: UInt16(address.1)))
    }
  }

  @Test("Certificate files and ACME together are refused", arguments: Array(Workspace.tls))
  func both(variable: String, file: String) throws {
    let workspace = try Workspace()
    let key = variable.hasSuffix("CERT_FILE") ? "tls.cert_file" : "tls.key_file"
    let faults = try workspace.faults(
      yaml: "tls: { acme: { domains: [a.example] } }", environment: [variable: file])
    #expect(faults.count == 1 && faults[0].hasSuffix("tls.acme: not allowed together with \(key)"), "\(faults)")
  }

  static let cases: [(String, String)] = [
    ("email: ops@example.com", "tls.acme.domains: missing"),
    ("domains: []", "tls.acme.domains: missing"),
    ("domains: ['*.example.com']", "is a wildcard, which the listener cannot prove"),
    ("domains: ['::']", "is not the address of a machine"),
    ("domains: [0.0.0.0]", "is not the address of a machine"),
    ("domains: ['[2001:db8::1]']", "is not a DNS name or an IP address (did you mean 2001:db8::1)"),
    ("domains: ['fe80::1%eth0']", "is not a DNS name or an IP address"),
    ("domains: ['2001:db8::1', '2001:DB8:0::1']", "tls.acme.domains[1]: given twice"),
    ("domains: [a.example], profile: 'short lived'", "is not the name of a profile"),
    ("domains: [a.example], profile: ''", "tls.acme.profile"),
    ("domains: [a_b.example]", "is not a DNS name or an IP address"),
    ("domains: [a.example.]", "is not a DNS name or an IP address (did you mean a.example)"),
    ("domains: [a.example, A.example]", "tls.acme.domains[1]: given twice"),
    ("domains: [a.example], email: ops", "is not an e-mail address"),
    ("domains: [a.example], email: 'mailto:ops@example.com'", "did you mean ops@example.com"),
    ("domains: [a.example], directory: 'http://acme.example/dir'", "did you mean https://acme.example/dir"),
    ("domains: [a.example], directory: acme.example", "is not a URL that begins with https://"),
    ("domains: [a.example], directory: 'https://acme.example:0/dir'", "is not a URL that begins with https://"),
    ("domains: [a.example], ca_file: prose.pem", "tls.acme.ca_file: DIR/prose.pem contains no certificate"),
    ("domains: [a.example], eab: { key_id: kid }", "tls.acme.eab.key_file: missing: tls.acme.eab.key_id is given"),
    ("domains: [a.example], eab: { key_file: good.token }", "tls.acme.eab.key_id: missing"),
    ("domains: [a.example], eab: { key_id: kid, key_file: prose.pem }", "tls.acme.eab.key_file: "),
    ("domains: [a.example], challenge: http", "is not one of tls-alpn-01, http-01"),
    ("domains: [a.example], http_listen: '[::]:8080'", "has no effect without tls.acme.challenge: http-01"),
    ("domains: [a.example], challenge: http-01, http_listen: 8080", "is not an address with a port"),
    (
      "domains: [a.example], challenge: http-01, http_listen: '127.0.0.1:6200'",
      "tls.acme.http_listen: port 6200 is used by listen at ::"
    ),
    ("domain: [a.example]", "tls.acme.domain: unknown key (did you mean tls.acme.domains)"),
  ]

  @Test("An invalid value is refused with its reason", arguments: cases)
  func broken(yaml: String, fault: String) throws {
    let workspace = try Workspace()
    try workspace.write("?\n", to: "prose.pem", permissions: 0o600)
    let faults = try workspace.faults(yaml: "tls: { acme: { \(yaml) } }", environment: [:])
    #expect(faults.contains { $0.contains(fault) }, "\(faults)")
    #expect(!faults.contains { $0.contains("cert_file") }, "\(faults)")
  }

  @Test("A binding key that every user can read is refused")
  func publicKey() throws {
    let workspace = try Workspace()
    try workspace.write("zWNDZM6eQGHWpSRT\n", to: "eab.key", permissions: 0o644)
    let faults = try workspace.faults(
      yaml: "tls: { acme: { domains: [a.example], eab: { key_id: kid, key_file: eab.key } } }", environment: [:])
    #expect(faults.count == 1 && faults[0].contains("every user of this machine can read"), "\(faults)")
  }

  @Test("An empty section is none: the gate needs a certificate from somewhere", arguments: ["", "acme:", "acme: {}"])
  func empty(section: String) throws {
    let workspace = try Workspace()
    let faults = try workspace.faults(yaml: "version: 1\ntls:\n  \(section)", environment: [:])
    #expect(faults.count == 2 && faults.allSatisfy { $0.hasSuffix("_file: missing") }, "\(faults)")
    #expect(try workspace.load(yaml: "tls:\n  \(section)").tls.files.count == 1)
  }
}

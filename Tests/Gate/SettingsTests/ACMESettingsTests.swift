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
    #expect(acme.proof == .tlsALPN && acme.profile == nil && !acme.usesCommonName)
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
          common_name: true
          ca_file: cert.pem
          eab: { key_id: kid-1, key_file: eab.key }
      """
    let acme = try #require(try workspace.load(yaml: yaml, environment: [:]).tls.acme)
    #expect(acme.email == "ops@example.com" && acme.directory == "https://acme.internal:14000/dir")
    #expect(acme.domains == ["gate.example.com", "192.0.2.1", "2001:db8::1"] && acme.profile == "shortlived")
    #expect(acme.usesCommonName)
    #expect(acme.caFile == workspace.folder + "/cert.pem")
    #expect(acme.binding == .init(keyID: "kid-1", keyFile: workspace.folder + "/eab.key"))
  }

  /// As `tsig-keygen gate` prints it.
  private static let transactionKey = """
    key "gate" {
    \talgorithm hmac-sha256;
    \tsecret "c2FsbHlwb3J0IHRlc3Qga2V5IHdpdGggMzIgYnl0ZXM=";
    };

    """

  @Test("DNS-01 proves wildcards, with a program or with dynamic updates")
  func dns() throws {
    let workspace = try Workspace()
    try workspace.write("#!/bin/sh\n", to: "hook", permissions: 0o755)
    try workspace.write(Self.transactionKey, to: "dns.key", permissions: 0o600)
    func proof(_ dns: String) throws -> GateSettings.TLS.ACME.Proof? {
      let yaml = "tls: { acme: { domains: ['*.A.example', a.example], challenge: dns-01, dns: { \(dns) } } }"
      let acme = try workspace.load(yaml: yaml, environment: [:]).tls.acme
      #expect(acme?.domains == ["*.a.example", "a.example"])
      return acme?.proof
    }
    #expect(try proof("hook: hook") == .dns(.hook(workspace.folder + "/hook"), wait: .seconds(10)))
    for (server, host, port) in [
      ("ns.example", "ns.example", 53), ("192.0.2.1:5353", "192.0.2.1", 5353),
      ("'[2001:db8::1]:53'", "2001:db8::1", 53),
    ] {
      #expect(
        try proof("server: \(server), key_file: dns.key, wait: 2m")
          == .dns(
            .server(.init(host: host, port: UInt16(port)), keyFile: workspace.folder + "/dns.key"), wait: .seconds(120))
      )
    }
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
    ("domains: ['*.example.com']", "*.example.com is a wildcard, which tls-alpn-01 cannot prove"),
    ("domains: ['*.example.com'], challenge: http-01", "is a wildcard, which http-01 cannot prove"),
    ("domains: ['*.']", "is not a DNS name or an IP address"),
    ("domains: ['*']", "is not a wildcard: write *. and a DNS name"),
    ("domains: ['*.*.example']", "is not a wildcard: write *. and a DNS name"),
    ("domains: ['a.*.example']", "is not a wildcard: write *. and a DNS name"),
    ("domains: ['*.192.0.2.1']", "is not a DNS name or an IP address"),
    ("domains: [192.0.2.1], challenge: dns-01, dns: { hook: hook }", "is an address, which dns-01 cannot prove"),
    ("domains: [a.example], challenge: dns-01", "dns-01 needs tls.acme.dns.hook, or tls.acme.dns.server"),
    (
      "domains: [a.example], dns: { hook: hook }", "tls.acme.dns.hook: has no effect without tls.acme.challenge: dns-01"
    ),
    ("domains: [a.example], dns: { wait: 1s }", "tls.acme.dns.wait: has no effect without"),
    ("domains: [a.example], challenge: dns-01, dns: { hook: none }", "DIR/none does not exist, or is not a file"),
    ("domains: [a.example], challenge: dns-01, dns: { hook: . }", "does not exist, or is not a file"),
    ("domains: [a.example], challenge: dns-01, dns: { hook: cert.pem }", "DIR/cert.pem is not executable"),
    ("domains: [a.example], challenge: dns-01, dns: { hook: open }", "every user of this machine can change DIR/open"),
    (
      "domains: [a.example], challenge: dns-01, dns: { hook: hook, server: ns.example, key_file: dns.key }",
      "tls.acme.dns.hook: not allowed together with tls.acme.dns.server"
    ),
    (
      "domains: [a.example], challenge: dns-01, dns: { hook: hook, key_file: dns.key }",
      "tls.acme.dns.key_file: has no effect without tls.acme.dns.server"
    ),
    (
      "domains: [a.example], challenge: dns-01, dns: { server: ns.example }",
      "tls.acme.dns.key_file: missing: tls.acme.dns.server is given"
    ),
    (
      "domains: [a.example], challenge: dns-01, dns: { key_file: dns.key }",
      "tls.acme.dns.server: missing: tls.acme.dns.key_file is given"
    ),
    (
      "domains: [a.example], challenge: dns-01, dns: { server: ns.example, key_file: public.key }",
      "every user of this machine can read DIR/public.key"
    ),
    (
      "domains: [a.example], challenge: dns-01, dns: { server: ns.example, key_file: prose.pem }",
      "DIR/prose.pem contains no key as tsig-keygen prints it"
    ),
    ("domains: [a.example], challenge: dns-01, dns: { server: '2001:db8::1' }", "did you mean [2001:db8::1]"),
    ("domains: [a.example], challenge: dns-01, dns: { server: 'ns.example:0' }", "is not a DNS server"),
    ("domains: [a.example], challenge: dns-01, dns: { server: 'ns.example port' }", "is not a DNS server"),
    ("domains: [a.example], challenge: dns-01, dns: { server: '[2001:db8::1' }", "is not a DNS server"),
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
    ("domains: [a.example], directory: 'https://[2001:db8::1/dir'", "is not a URL that begins with https://"),
    ("domains: [a.example], ca_file: prose.pem", "tls.acme.ca_file: DIR/prose.pem contains no certificate"),
    ("domains: [a.example], eab: { key_id: kid }", "tls.acme.eab.key_file: missing: tls.acme.eab.key_id is given"),
    ("domains: [a.example], eab: { key_file: good.token }", "tls.acme.eab.key_id: missing"),
    ("domains: [a.example], eab: { key_id: kid, key_file: prose.pem }", "tls.acme.eab.key_file: "),
    ("domains: [a.example], challenge: http", "is not one of tls-alpn-01, http-01, dns-01"),
    ("domains: [a.example], http_listen: '[::]:8080'", "has no effect without tls.acme.challenge: http-01"),
    ("domains: [a.example], challenge: http-01, http_listen: 8080", "is not an address with a port"),
    (
      "domains: [a.example], challenge: http-01, http_listen: '127.0.0.1:6200'",
      "tls.acme.http_listen: port 6200 is used by listen at ::"
    ),
    (
      "domains: [192.0.2.1], common_name: true",
      "tls.acme.common_name: tls.acme.domains has no DNS name, only addresses"
    ),
    (
      "domains: [\(String(repeating: "a.", count: 30))example], common_name: true",
      "example is longer than 64 characters"
    ),
    ("domain: [a.example]", "tls.acme.domain: unknown key (did you mean tls.acme.domains)"),
  ]

  @Test("An invalid value is refused with its reason", arguments: cases)
  func broken(yaml: String, fault: String) throws {
    let workspace = try Workspace()
    try workspace.write("?\n", to: "prose.pem", permissions: 0o600)
    try workspace.write("#!/bin/sh\n", to: "hook", permissions: 0o755)
    try workspace.write("#!/bin/sh\n", to: "open", permissions: 0o757)
    try workspace.write(Self.transactionKey, to: "dns.key", permissions: 0o600)
    try workspace.write(Self.transactionKey, to: "public.key", permissions: 0o644)
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

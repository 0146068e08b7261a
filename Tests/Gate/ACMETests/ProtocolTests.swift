import ACME
import ByteCoding
import Cryptography
import Foundation
import Testing

@Suite("The values of ACME")
struct ProtocolTests {
  // RFC 9449 section 4 has a key on P-256, and section 6.1 its thumbprint.
  @Test("The thumbprint of a key is that of RFC 7638")
  func thumbprint() throws {
    let x = try #require(Base64URL.decode("l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs"))
    let y = try #require(Base64URL.decode("9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA"))
    let key = JSONWebKey(x963: [4] + x + y)
    #expect(key.thumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
    #expect(JSONWebKey(x963: [4] + y + x).thumbprint != key.thumbprint)
  }

  @Test("A key authorization is the token, a dot and the thumbprint (RFC 8555 section 8.1)")
  func keyAuthorization() throws {
    let key = try AccountKey()
    #expect(key.keyAuthorization(for: "abc") == "abc.\(key.webKey.thumbprint)")
    #expect(try AccountKey(pem: key.pem).webKey == key.webKey)
  }

  // RFC 9773 section 4.1 has both parts and the result.
  @Test("The name of a certificate for renewal information is that of RFC 9773")
  func renewalID() throws {
    let key = try ECPrivateKey(.p256)
    var template = CertificateTemplate(
      subject: DistinguishedName(.commonName("example")), subjectPublicKeyInfo: key.spki, notBefore: .now(),
      notAfter: .now().advanced(by: .seconds(60)))
    template.serialNumber = [0x00, 0x87, 0x65, 0x43, 0x21]
    template.extensions = [
      .authorityKeyIdentifier(try #require(Hex.decode("69885B6B87464041E1B37B847BA0AE2CDE01C8D4")))
    ]
    let certificate = try template.selfSigned(with: key)
    let issued = try IssuedCertificate(chainPEM: certificate.pem, keyPEM: key.pkcs8PEM)
    #expect(issued.renewalID == "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE")
    template.extensions = []
    let unnamed = try IssuedCertificate(chainPEM: template.selfSigned(with: key).pem, keyPEM: key.pkcs8PEM)
    #expect(unnamed.renewalID == nil)
  }

  @Test("A certificate and its key in one file are read as they were written; another key is refused")
  func oneFile() throws {
    let (key, other) = (try ECPrivateKey(.p256), try ECPrivateKey(.p256))
    let (pem, keyPEM) = try ChallengeCertificate.make(for: "a.example", digest: SHA256.hash([1]), at: .now())
    let issued = try IssuedCertificate(chainPEM: pem, keyPEM: keyPEM)
    #expect(try IssuedCertificate(file: issued.file) == issued)
    #expect(issued.covers(["A.example"]) && !issued.covers(["a.example", "b.example"]))
    for wrong in [try key.pkcs8PEM, try other.pkcs8PEM] {
      #expect(throws: IssuedCertificate.Malformed.self) { try IssuedCertificate(chainPEM: pem, keyPEM: wrong) }
    }
    for broken in ["", pem, keyPEM, issued.file.replacingOccurrences(of: "MII", with: "XXX")] {
      #expect(throws: IssuedCertificate.Malformed.self) { try IssuedCertificate(file: broken) }
    }
  }

  @Test("OpenSSL reads the challenge certificate: one name, and the critical extension with the digest")
  func challengeCertificate() throws {
    let digest = SHA256.hash(Array("token.thumbprint".utf8))
    let (pem, _) = try ChallengeCertificate.make(for: "gate.example", digest: digest, at: .now())
    let certificate = try #require(try Certificate.certificates(pem: pem).first)
    #expect(certificate.dnsNames == ["gate.example"])
    #expect(certificate.extensionValue(oid: "1.3.6.1.5.5.7.1.31") == [4, 32] + digest)
  }

  @Test("Challenges are stored as texts: digests, which earlier versions read, and key authorizations")
  func storedChallenges() throws {
    var challenges = ListenerChallenges()
    challenges.digests["gate.example"] = [1, 2, 3]
    challenges.keyAuthorizations["token"] = "token.thumbprint"
    let data = try JSONEncoder().encode(challenges)
    let texts = try JSONDecoder().decode([String: String].self, from: data)
    #expect(texts == ["gate.example": "AQID", "token": "token.thumbprint"])
    #expect(try JSONDecoder().decode(ListenerChallenges.self, from: data) == challenges)
    #expect(try JSONDecoder().decode(ListenerChallenges.self, from: Data(#"{"a":"?"}"#.utf8)) == ListenerChallenges())
  }

  @Test("The challenge certificate of an address has the address and is asked for by its reverse name (RFC 8738)")
  func addressChallenge() throws {
    for (name, bytes, server) in [
      ("192.0.2.1", [192, 0, 2, 1], "1.2.0.192.in-addr.arpa"),
      (
        "2001:db8::1", [0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 11) + [1],
        "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"
      ),
    ] as [(String, [UInt8], String)] {
      #expect(ChallengeCertificate.serverName(for: name) == server)
      let (pem, keyPEM) = try ChallengeCertificate.make(for: name, digest: SHA256.hash([1]), at: .now())
      let issued = try IssuedCertificate(chainPEM: pem, keyPEM: keyPEM)
      #expect(issued.leaf.ipAddresses == [bytes] && issued.leaf.dnsNames == [])
      #expect(issued.names == [name] && issued.covers([name]) && !issued.covers(["192.0.2.2"]))
    }
    #expect(ChallengeCertificate.serverName(for: "Gate.example") == "gate.example")
  }

  @Test("The text form of an address does not matter")
  func addressForms() throws {
    let (pem, keyPEM) = try ChallengeCertificate.make(for: "2001:DB8:0::1", digest: SHA256.hash([1]), at: .now())
    #expect(try IssuedCertificate(chainPEM: pem, keyPEM: keyPEM).covers(["2001:db8::1"]))
  }

  @Test(
    "An external account binding is an HS256 signature over the account's key",
    arguments: [
      "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W", "AAECAw==", "-_-_",
    ])
  func binding(key: String) throws {
    #expect(ExternalAccountBinding(keyID: "kid-1", key: key)?.keyID == "kid-1")
    #expect(!"\(try #require(ExternalAccountBinding(keyID: "kid-1", key: key)))".contains(key))
  }

  @Test("A binding key that is not base64url is refused", arguments: ["", "=", "not a key!", "a"])
  func noBinding(key: String) { #expect(ExternalAccountBinding(keyID: "kid-1", key: key) == nil) }

  @Test("A problem document becomes one line with a code that fits a metric")
  func problem() throws {
    let text = """
      {"type":"urn:ietf:params:acme:error:rejectedIdentifier","detail":"two\\nlines","subproblems":[
      {"type":"urn:ietf:params:acme:error:caa","detail":"no","identifier":{"type":"dns","value":"b.example"}}]}
      """
    let problem = try JSONDecoder().decode(Problem.self, from: Data(text.utf8))
    #expect(problem.code == "rejectedIdentifier")
    #expect("\(problem)" == "rejectedIdentifier: two lines; b.example: caa: no")
    for type in [
      "urn:ietf:params:acme:error:", "about:blank", "urn:ietf:params:acme:error:a b", "", nil,
      "urn:ietf:params:acme:error:inventedByTheServer",
    ] {
      #expect(Problem(type: type).code == "unknown")
    }
    #expect("\(Problem(detail: String(repeating: "x", count: 10_000)))".count <= 501)
    #expect("\(Problem(detail: "a\u{1B}[2Jb\u{202E}c"))" == "unknown: a\u{FFFD}[2Jb\u{FFFD}c")
  }

  @Test("Texts of the server are bounded and printable in every error and in a window's explanation")
  func boundedTexts() {
    // A character of many scalars is one character.
    let long = "e" + String(repeating: "\u{301}", count: 100_000) + "\u{1B}[2J"
    let problem = Problem(type: long, detail: "\u{1B}" + long)
    let errors: [ACMEError] = [
      .unreachable(server: long, reason: long), .untrusted(server: long, reason: long),
      .malformed(url: long, reason: long), .noDirectory(url: long, reason: long), .refused(step: .order, problem),
      .rateLimited(problem, until: nil),
      .notValidated(name: long, by: .http, problem), .noChallenge(name: long, .tlsALPN, offered: [long]),
      .unusable(reason: long), .storage(reason: long),
    ]
    let texts =
      errors.map(\.description) + [
        RenewalPlan.Failure(code: "x", text: "a\n\u{1B}" + long, at: .now()).text,
        RenewalWindow(start: .now(), end: .now(), explanation: "\u{202E}" + long).explanation ?? long,
      ]
    for text in texts {
      #expect(text.unicodeScalars.count < 1600)
      #expect(!text.unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{202E}" || $0 == "\n" })
    }
  }

  @Test("A renewal window is read; a window that ends before it begins is refused")
  func window() throws {
    let text = #"{"suggestedWindow":{"start":"2025-01-02T04:00:00Z","end":"2025-01-03T04:00:00Z"}}"#
    let window = try JSONDecoder().decode(RenewalWindow.self, from: Data(text.utf8))
    #expect(window.end.since(window.start) == .seconds(86_400))
    #expect(try JSONDecoder().decode(RenewalWindow.self, from: JSONEncoder().encode(window)) == window)
    let turned = text.replacingOccurrences(of: "start", with: "x").replacingOccurrences(of: "end", with: "start")
      .replacingOccurrences(of: "\"x\"", with: "\"end\"")
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(RenewalWindow.self, from: Data(turned.utf8)) }
  }

  @Test(
    "Every error says what to do",
    arguments: [
      ACMEError.unreachable(server: "s", reason: "r"), .untrusted(server: "s", reason: "r"),
      .malformed(url: "u", reason: "r"), .noDirectory(url: "u", reason: "r"),
      .refused(step: .order, Problem()), .rateLimited(Problem(), until: nil),
      .notValidated(name: "n", by: .http, Problem(type: "urn:ietf:params:acme:error:caa")),
      .noChallenge(name: "n", .tlsALPN, offered: ["n"]),
      .record(name: "r", reason: "s"), .unknownProfile(name: "p", offered: []),
      .unknownProfile(name: "p", offered: ["q"]), .bindingRequired, .unfinished(step: .order), .unusable(reason: "r"),
      .clock(notBefore: .now(), notAfter: .now()), .storage(reason: "r"),
    ])
  func hints(error: ACMEError) {
    #expect(!error.hint.isEmpty && !"\(error)".isEmpty && !error.code.isEmpty)
    #expect(!"\(error)".contains("\n") && !error.hint.contains("\n"))
    #expect(ACMEError.codes.contains(error.code))
  }

  @Test("A hint names the directory and the account only where they can be at fault")
  func causes() {
    #expect(ACMEError.noDirectory(url: "u", reason: "r").hint.contains("tls.acme.directory"))
    #expect(!ACMEError.malformed(url: "u", reason: "r").hint.contains("tls.acme.directory"))
    let problem = Problem(type: "urn:ietf:params:acme:error:unauthorized")
    for step in ACMEError.Step.allCases {
      let hint = ACMEError.refused(step: step, problem).hint
      let isOfAccount = step == .account || step == .order
      #expect(hint.contains("account.json") == isOfAccount && hint.contains("shared_documents") == isOfAccount)
    }
  }

  @Test("The scope of a certificate depends on the server and the set of names alone")
  func scopes() {
    let settings = CertificateOrderSettings(directory: "https://acme.example/dir", names: ["a.example", "b.example"])
    var turned = settings
    turned.names.reverse()
    turned.email = "ops@example.com"
    #expect(settings.certificateScope == turned.certificateScope && settings.certificateScope.hasPrefix("a.example-"))
    // Earlier versions named the scope after the first name.
    let former = "b.example-\(settings.certificateScope.suffix(8))"
    #expect(settings.formerScopes == [former] && turned.formerScopes == [former])
    #expect(settings.accountScope == turned.accountScope)
    var other = settings
    other.names = ["a.example"]
    #expect(other.formerScopes == [])
    #expect(other.certificateScope != settings.certificateScope && other.accountScope == settings.accountScope)
    other.directory = "https://other.example/dir"
    #expect(other.accountScope != settings.accountScope)
    #expect(!CertificateOrderSettings(directory: "https://a/../../x", names: ["../x"]).certificateScope.contains("/"))
  }
}

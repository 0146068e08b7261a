import bearer
import OIDCClient
import TestSupport
import Testing

@Suite("The files that bearer.yaml names")
struct NamedFilesTests {
  private static let provider = "issuer: https://a.example\nclient_id: c\n"

  @Test(
    arguments: [
      ("s3cret", true, nil as String?), ("s3cret\r\n", true, nil), (" s ", true, nil),
      (
        "s3cret", false,
        "group or others can read or change /etc/b/secret; run chmod 600, and replace what they may know"
      ),
      ("", true, "the file is empty"), ("\n", true, "the file is empty"),
      ("a\nb\n", true, "must not contain line breaks or other control characters"),
    ])
  func `a secret is private and not empty`(text: String, isPrivate: Bool, reason: String?) throws {
    let files = NamedFiles().with("secret", text, isPrivate: isPrivate)
    #expect(
      try files.faults(provider: Self.provider + "client_secret_file: secret")
        == (reason.map { ["5:25: client_secret_file: \($0)"] } ?? []))
  }

  @Test func `a secret that is not text is refused`() throws {
    let files = NamedFiles().with("secret", bytes: [0xFF, 0xFE])
    #expect(
      try files.faults(provider: Self.provider + "client_secret_file: secret")
        == ["5:25: client_secret_file: /etc/b/secret is not valid UTF-8"])
  }

  @Test func `a secret belongs to basic and post, and a key to private_key_jwt`() async throws {
    let files = NamedFiles().with("s", "s3cret").with("k", try await OpenSSL.privateKey())
    func faults(_ lines: String) throws -> [String] { try files.faults(provider: Self.provider + lines) }
    #expect(try faults("authentication: private_key_jwt\nprivate_key_file: k") == [])
    #expect(try faults("authentication: basic\nclient_secret_file: s") == [])
    #expect(try faults("authentication: basic") == ["5:21: authentication: basic needs a client secret"])
    #expect(
      try faults("authentication: private_key_jwt") == ["5:21: authentication: private_key_jwt needs private_key_file"])
    #expect(
      try faults("authentication: none\nclient_secret_file: s")
        == ["6:25: client_secret_file: is not used with authentication none; use basic or post"])
    #expect(
      try faults("authentication: private_key_jwt\nprivate_key_file: k\nclient_secret_file: s")
        == ["7:25: client_secret_file: is not used with private_key_jwt"])
    #expect(
      try faults("private_key_file: k\nprivate_key_id: k1")
        == ["private_key_file: ", "private_key_id: "].enumerated().map { index, key in
          "\(5 + index):\(index == 0 ? 23 : 21): \(key)is only used with authentication private_key_jwt"
        })
    #expect(
      try faults("authentication: private_key\nprivate_key_file: k")
        == [
          "5:21: authentication: \"private_key\" is not one of none, basic, post, private_key_jwt, tls_client_auth, "
            + "attestation"
        ])
  }

  @Test func `a private key is private, and a key in PEM`() async throws {
    let lines = Self.provider + "authentication: private_key_jwt\nprivate_key_file: k"
    let pem = try await OpenSSL.privateKey()
    #expect(try NamedFiles().with("k", pem).faults(provider: lines) == [])
    #expect(
      try NamedFiles().with("k", pem, isPrivate: false).faults(provider: lines)
        == [
          "6:23: private_key_file: group or others can read or change /etc/b/k; run chmod 600, and replace what they may know"
        ])
    #expect(
      try NamedFiles().with("k", "key").faults(provider: lines)
        == ["6:23: private_key_file: is not a private key in PEM"])
    #expect(
      try NamedFiles().faults(provider: lines)
        == ["6:23: private_key_file: cannot read /etc/b/k: No such file or directory (ENOENT)"])
  }

  @Test func `a file of roots contains certificates`() async throws {
    let lines = Self.provider + "ca_file: ca"
    let pem = try await OpenSSL.certificate()
    for good in [pem, pem + pem, "a comment\n" + pem, pem.replacing("\n", with: "\r\n")] {
      #expect(try NamedFiles().with("ca", good, isPrivate: false).faults(provider: lines) == [])
    }
    let der = pem.split(separator: "\n")
    let short = (der.prefix(2) + der.dropFirst(3)).joined(separator: "\n")
    let bad = [
      "", "x", try await OpenSSL.privateKey(), short, pem.replacing("-----END CERTIFICATE-----", with: ""),
      "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
      "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n", pem + short,
    ]
    for text in bad {
      #expect(
        try NamedFiles().with("ca", text).faults(provider: lines)
          == ["5:14: ca_file: /etc/b/ca contains no certificate in PEM, or a malformed one"])
    }
    #expect(
      try NamedFiles().faults(provider: lines) == [
        "5:14: ca_file: cannot read /etc/b/ca: No such file or directory (ENOENT)"
      ])
  }

  @Test(
    arguments: [
      ("sha256/\(String(repeating: "A", count: 43))=", true), ("sha256/\(String(repeating: "A", count: 42))==", false),
      (String(repeating: "A", count: 43) + "=", false), ("sha1/\(String(repeating: "A", count: 43))=", false),
      ("sha256/\(String(repeating: "A", count: 43))", false), ("sha256/\(String(repeating: "A", count: 42))B=", false),
      ("SHA256/\(String(repeating: "A", count: 43))=", false), ("x", false),
    ])
  func `a pin is the hash of a key`(pin: String, isAllowed: Bool) throws {
    #expect(
      try NamedFiles().faults(provider: Self.provider + "pins: [\"\(pin)\"]")
        == (isAllowed ? [] : ["5:12: pins[0]: must be sha256/ and the base64 of 32 bytes, 44 characters"]))
  }
}

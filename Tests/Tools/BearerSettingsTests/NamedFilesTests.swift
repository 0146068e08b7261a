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
  func `a secret is private and not empty`(text: String, isPrivate: Bool, reason: String?) {
    let files = NamedFiles().with("/etc/b/secret", text, isPrivate: isPrivate)
    #expect(
      files.faults(provider: Self.provider + "client_secret_file: secret")
        == (reason.map { ["5:25: client_secret_file: \($0)"] } ?? []))
  }

  @Test func `a secret that is not text is refused`() {
    var files = NamedFiles()
    files.contents["/etc/b/secret"] = SettingsFile(bytes: [0xFF, 0xFE], isPrivate: true)
    #expect(
      files.faults(provider: Self.provider + "client_secret_file: secret")
        == ["5:25: client_secret_file: /etc/b/secret is not valid UTF-8"])
  }

  @Test func `a secret belongs to basic and post, and a key to private_key_jwt`() async throws {
    let files = NamedFiles().with("/etc/b/s", "s3cret").with("/etc/b/k", try await OpenSSL.privateKey())
    func faults(_ lines: String) -> [String] { files.faults(provider: Self.provider + lines) }
    #expect(faults("authentication: private_key_jwt\nprivate_key_file: k") == [])
    #expect(faults("authentication: basic\nclient_secret_file: s") == [])
    #expect(faults("authentication: basic") == ["5:21: authentication: basic needs a client secret"])
    #expect(
      faults("authentication: private_key_jwt") == ["5:21: authentication: private_key_jwt needs private_key_file"])
    #expect(
      faults("authentication: none\nclient_secret_file: s")
        == ["6:25: client_secret_file: is not used with authentication none; use basic or post"])
    #expect(
      faults("authentication: private_key_jwt\nprivate_key_file: k\nclient_secret_file: s")
        == ["7:25: client_secret_file: is not used with private_key_jwt"])
    #expect(
      faults("private_key_file: k\nprivate_key_id: k1")
        == ["private_key_file: ", "private_key_id: "].enumerated().map { index, key in
          "\(5 + index):\(index == 0 ? 23 : 21): \(key)is only used with authentication private_key_jwt"
        })
    #expect(
      faults("authentication: private_key\nprivate_key_file: k")
        == ["5:21: authentication: must be none or basic or post or private_key_jwt or tls_client_auth or attestation"])
  }

  @Test func `a private key is private, and a key in PEM`() async throws {
    let lines = Self.provider + "authentication: private_key_jwt\nprivate_key_file: k"
    let pem = try await OpenSSL.privateKey()
    #expect(NamedFiles().with("/etc/b/k", pem).faults(provider: lines) == [])
    #expect(
      NamedFiles().with("/etc/b/k", pem, isPrivate: false).faults(provider: lines)
        == [
          "6:23: private_key_file: group or others can read or change /etc/b/k; run chmod 600, and replace what they may know"
        ])
    #expect(
      NamedFiles().with("/etc/b/k", "key").faults(provider: lines)
        == ["6:23: private_key_file: is not a private key in PEM"])
    #expect(
      NamedFiles().faults(provider: lines)
        == ["6:23: private_key_file: /etc/b/k cannot be read: No such file or directory"])
  }

  @Test func `a file of roots contains certificates`() async throws {
    let lines = Self.provider + "ca_file: ca"
    let pem = try await OpenSSL.certificate()
    for good in [pem, pem + pem, "a comment\n" + pem, pem.replacing("\n", with: "\r\n")] {
      #expect(NamedFiles().with("/etc/b/ca", good, isPrivate: false).faults(provider: lines) == [])
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
        NamedFiles().with("/etc/b/ca", text).faults(provider: lines)
          == ["5:14: ca_file: /etc/b/ca contains no certificate in PEM, or a malformed one"])
    }
    #expect(
      NamedFiles().faults(provider: lines) == ["5:14: ca_file: /etc/b/ca cannot be read: No such file or directory"])
  }

  @Test(
    arguments: [
      ("sha256/\(String(repeating: "A", count: 43))=", true), ("sha256/\(String(repeating: "A", count: 42))==", false),
      (String(repeating: "A", count: 43) + "=", false), ("sha1/\(String(repeating: "A", count: 43))=", false),
      ("sha256/\(String(repeating: "A", count: 43))", false), ("sha256/\(String(repeating: "A", count: 42))B=", false),
      ("SHA256/\(String(repeating: "A", count: 43))=", false), ("", false),
    ])
  func `a pin is the hash of a key`(pin: String, isAllowed: Bool) {
    #expect(
      NamedFiles().faults(provider: Self.provider + "pins: [\"\(pin)\"]")
        == (isAllowed ? [] : ["5:12: pins[0]: must be sha256/ and the base64 of 32 bytes, 44 characters"]))
  }
}

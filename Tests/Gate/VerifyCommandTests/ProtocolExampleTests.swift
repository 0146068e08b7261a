import AppAttest
import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing

/// The worked example in the article about the protocol. Its bytes are those of one simulated device, recorded once.
private struct ProtocolExample {
  private let blocks: [String: String]

  init() throws {
    let article = try ProjectFile.text("Sources/App/AttestClient/AttestClient.docc/Protocol.md")
    let section = try #require(article.components(separatedBy: "\n## An example with its bytes\n").dropFirst().first)
    var blocks: [String: String] = [:]
    // `**Name**`, then a block.
    for match in section.matches(of: #/\*\*([^*]+)\*\*[^\n]*\n\n```\n([^`]*)```/#) {
      blocks[String(match.output.1)] = String(match.output.2)
    }
    self.blocks = blocks
  }

  /// The text of the block called `name`.
  func text(_ name: String) throws -> String { try #require(blocks[name], "\(name): \(blocks.keys.sorted())") }

  /// The same without line breaks and blanks.
  func joined(_ name: String) throws -> String { try text(name).filter { !$0.isWhitespace } }

  func hex(_ name: String) throws -> [UInt8] { try #require(Hex.decode(joined(name)), "\(name)") }
  func base64(_ name: String) throws -> [UInt8] { try #require(Base64.decode(joined(name)), "\(name)") }
}

@Suite("The example of the protocol")
struct ProtocolExampleTests {
  private static let instant = "2027-01-15T08:00:00Z"

  @Test("The registration holds by the real verifier, and each value follows from those before it")
  func registration() throws {
    let (shell, example) = (try Shell(), try ProtocolExample())
    let nonce = try example.hex("nonce")
    let clientDataHash = try example.hex("clientDataHash")
    #expect(nonce.count == 32 && clientDataHash == SHA256.hash(nonce))
    let attestation = try AttestationObject(try example.base64("attestation"))
    let authenticatorData = try example.hex("authenticator data of the attestation")
    #expect(try example.base64("attestation").firstRange(of: authenticatorData) != nil)
    let leafNonce = SHA256.hash(authenticatorData + clientDataHash)
    #expect(try example.hex("nonce in the leaf") == leafNonce)
    #expect(try example.base64("attestation").firstRange(of: leafNonce) != nil)
    #expect(try example.base64("keyId") == SHA256.hash(try example.base64("public key")))
    #expect(attestation.receipt.clientDataHash == clientDataHash)

    let body =
      #"{"keyId": "\#(try example.joined("keyId"))", "attestation": "\#(try example.joined("attestation"))", "#
      + #""nonce": "\#(try example.joined("nonce"))"}"#
    let roots = try ["attestation root", "receipt root"].map { try shell.file($0, example.text($0)) }
    let transcript = try shell.verify(
      [
        "attestation", "-", "--app-id", Fixtures.appID, "--at", Self.instant, "--root", roots[0], "--root", roots[1],
      ], input: Array(body.utf8))
    #expect(transcript.status == 0, "\(transcript)")
  }

  @Test("The headers hold by the real verifier, and each value follows from those before it")
  func assertion() throws {
    let (shell, example) = (try Shell(), try ProtocolExample())
    let headers = try example.text("headers").replacing(#/\n +/#, with: "")
    let nonce = try example.hex("nonce of the connection")
    #expect(headers.hasSuffix("X-App-Assert-Nonce: \(Hex.encode(nonce))\n"))
    let authenticatorData = try example.hex("authenticator data of the assertion")
    let app = try #require(AppID(Fixtures.appID))
    #expect(authenticatorData.starts(with: app.hash))
    #expect(authenticatorData[33..<37] == [0, 0, 0, 1])
    #expect(try example.hex("signed digest") == SHA256.hash(authenticatorData + SHA256.hash(nonce)))
    let transcript = try shell.verify(
      [
        "assertion", "-", "--app-id", Fixtures.appID, "--public-key", example.joined("public key"), "--counter", "0",
      ], input: Array(headers.utf8))
    #expect(transcript.status == 0, "\(transcript)")
    // The same headers with another nonce are not valid.
    let other = headers.replacing(Hex.encode(nonce), with: String(repeating: "00", count: 32))
    let refused = try shell.verify(
      [
        "assertion", "-", "--app-id", Fixtures.appID, "--public-key", example.joined("public key"), "--counter", "0",
      ], input: Array(other.utf8))
    #expect(refused.status == 1)
  }
}

import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import Wire
import GateFixtures
@testable import GateRuntime
import Settings
import SimulatedDevice
import TestSupport
import Testing

@Suite("The client of Apple's data service", .timeLimit(.minutes(2)))
struct DataServiceClientTests {
  private static let appID = "AAABBBCCC1.com.example.app"

  /// The outcome of an exchange with the server at `port`.
  private func fault(of port: UInt16, patience: Duration) async throws -> String? {
    let app = try #require(AppID(Self.appID))
    let client = try DataServiceClient(
      [
        (
          app, [.development],
          ServerAddress(isSecure: false, host: "127.0.0.1", port: port, path: "/v1/attestationData")
        )
      ], patience: patience, proxies: ProxyVariables { _ in nil })
    let authority = try TestAuthority(appID: Self.appID, at: .now())
    let device = try MintedDevice(app: SimulatedApp(appID: Self.appID), authority: authority)
    let object = try device.attestations.attestation(of: device.key, clientDataHash: SHA256.hash([1]), at: .now())
    let key = AttestedKey(
      keyID: device.keyID, publicKey: device.key.publicKey.x963, appID: app, environment: .development)
    let exchanger = ReceiptExchanger(
      transport: client, judge: AnswerJudge(roots: [authority.receiptRoot.certificate]))
    let due = DueReceipt(key: key, receipt: try AttestationObject(object).receipt.bytes, failures: 0)
    let outcome = await exchanger.exchange(
      due, with: DeveloperKey(teamID: "AAABBBCCC1", keyID: "KEY1234567", key: try P256PrivateKey()), at: .now())
    guard case .unusable(let fault) = outcome.judgement else { return outcome.judgement.code }
    return fault.code
  }

  @Test("An answer that drips for ever ends at the one deadline of the exchange")
  func dripping() async throws {
    let server = try DrippingServer()
    #expect(try await fault(of: server.port, patience: .milliseconds(500)) == "no_answer")
    #expect(server.paths == ["/v1/attestationData"])
  }

  @Test(
    "An answer of 1 GiB is refused before it is read",
    arguments: ["Content-Length: 1073741824\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n40000000\r\n"])
  func huge(head: String) async throws {
    let server = try DrippingServer(opening: Array("HTTP/1.1 200 OK\r\n\(head)".utf8))
    #expect(try await fault(of: server.port, patience: .seconds(60)) == "answer_too_long")
  }

  @Test("An answer that is not HTTP, and a port without a server, have codes of their own")
  func others() async throws {
    let server = try DrippingServer(opening: Array("SSH-2.0-OpenSSH_9.2\r\n\r\n".utf8))
    #expect(try await fault(of: server.port, patience: .seconds(60)) == "malformed_answer")
    #expect(try await fault(of: 1, patience: .seconds(60)) == "no_answer")
  }

  @Test("A redirect is not followed")
  func redirect() async throws {
    let head = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    let server = try DrippingServer(opening: Array(head.utf8))
    #expect(try await fault(of: server.port, patience: .seconds(60)) == "redirect")
  }
}

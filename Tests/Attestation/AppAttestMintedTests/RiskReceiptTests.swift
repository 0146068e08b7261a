import AppAttest
import ByteCoding
import Cryptography
import SimulatedDevice
import Testing

@Suite("Minted receipts with a risk metric")
struct RiskReceiptTests {
  @Test(
    "A receipt verifies until it expires, and contains the metric", arguments: [(0, true), (90, true), (91, false)])
  func risk(days: Int64, isAccepted: Bool) throws {
    let authority = try Scene.authority.get()
    let key = try P256PrivateKey()
    let mint = AttestationMint(authority: authority, app: Scene.app())
    let receipt = try Receipt(mint.riskReceipt(of: key, metric: 3, at: Scene.now))
    #expect(receipt.kind == .receipt)
    #expect(receipt.riskMetric == "3")
    #expect(receipt.renewableFrom == Scene.now.advanced(by: .seconds(Scene.day)))

    let verifier = ReceiptVerifier(roots: [authority.receiptRoot.certificate])
    let expectation = ReceiptExpectation(
      appID: try unwrap(AppID(Scene.appID)), publicKey: key.publicKey.x963,
      clientDataHash: ClientDataHash(bytes: [1]), environment: .development)
    let instant = Scene.now.advanced(by: .seconds(days * Scene.day))
    if isAccepted {
      try verifier.verify(receipt, for: expectation, at: instant)
    } else {
      #expect(throws: ReceiptRejection.expired(receipt.expirationTime, at: instant)) {
        try verifier.verify(receipt, for: expectation, at: instant)
      }
    }
  }
}

import AppAttest
import ByteCoding
import Cryptography
import Testing

@Suite("App Attest values")
struct ValuesTests {
  @Test(
    "An app ID is a team identifier, a dot and a bundle identifier",
    arguments: [
      "AAABBBCCC1.com.example.app", "1234567890.a", "ZZZZZZZZZZ.com.example-app.A1",
      // The app in Apple's published sample.
      "0352187391.com.apple.example_app_attest",
    ])
  func readsAppIDs(_ text: String) throws {
    let app = try #require(AppID(text))
    #expect(app.text == text)
    #expect(app.teamID == text.prefix(10) && app.bundleID == text.dropFirst(11))
    #expect(app.hash == SHA256.hash(Array(text.utf8)))
    #expect(AppID(teamID: app.teamID, bundleID: app.bundleID) == app)
  }

  @Test(
    "Other text is not an app ID",
    arguments: [
      "", ".", "AAABBBCCC1", "AAABBBCCC1.", ".com.example.app", "AAABBBCCC.com.example.app",
      "AAABBBCCC12.com.example.app", "aaabbbccc1.com.example.app", "AAABBBCCC1.com.example app",
      "AAABBBCCC1.com.example.app\n", "AAABBBCCC1.com.éxample.app", "AAABBBCCC1.com/example", "AAABBBCC\u{C9}1.com",
      "AAABBBCCC1.com.example.*", "AAABBBCCC1." + String(repeating: "a", count: 256),
    ])
  func refusesAppIDs(_ text: String) { #expect(AppID(text) == nil) }

  @Test("A key identifier has 32 bytes and is encoded as Base64 with padding")
  func readsKeyIDs() throws {
    let text = "2o0syRGn1HDKDv85d522XBC9nLqrHWHGnt/mJ5hWMQM="
    let keyID = try #require(KeyID(base64: text))
    #expect(keyID.bytes.count == 32 && keyID.base64 == text)
    for other in ["", "AAAA", String(text.dropLast()), text + "=", text.replacing("/", with: "_")] {
      #expect(KeyID(base64: other) == nil)
    }
    #expect(KeyID(bytes: [UInt8](repeating: 0, count: 31)) == nil)
    #expect(KeyID(bytes: [UInt8](repeating: 0, count: 33)) == nil)
  }

  @Test("The pinned roots are those that Apple publishes")
  func pinsRoots() throws {
    let (attestation, receipt) = (AppleRoots.appAttestation, AppleRoots.appleRootG3)
    #expect(
      Hex.encode(attestation.fingerprint) == "1cb9823ba28ba6ad2d33a006941de2ae4f513ef1d4e831b9f7e0fa7b6242c932")
    #expect(Hex.encode(receipt.fingerprint) == "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
    #expect(attestation.subject == "ST=California,O=Apple Inc.,CN=Apple App Attestation Root CA")
    #expect(attestation.notBefore == (try time("2020-03-18T18:32:53Z")))
    #expect(attestation.notAfter == (try time("2045-03-15T00:00:00Z")))
    #expect(receipt.notBefore == (try time("2014-04-30T18:19:06Z")))
    #expect(receipt.notAfter == (try time("2039-04-30T18:19:06Z")))
  }
}

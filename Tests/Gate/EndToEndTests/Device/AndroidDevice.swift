import ByteCoding
import Cryptography
import SimulatedDevice
import Transport

/// A simulated Android device whose chain a test can change.
struct AndroidDevice: Sendable {
  var mint: AndroidMint

  init() throws {
    mint = try AndroidConfiguration.batch.get()
    mint.certificates[0].key = try ECPrivateKey(.p256)
    mint.certificates[0].subjectPublicKeyInfo = mint.key.spki
  }

  var keyID: String { Base64.encode(SHA256.hash(mint.key.x963)) }

  /// The chain over a nonce in hex.
  func chain(over nonce: String) throws -> [String] {
    var mint = mint
    mint.description.challenge = Hex.decode(nonce) ?? []
    return try mint.chain().map { Base64.encode($0) }
  }

  /// The signature of the contract with apps, made here from its parts and not by the gate's code.
  func headers(over nonce: String) throws -> HeaderFields {
    let message =
      Array("sallyport android key v1".utf8) + [0] + (Hex.decode(nonce) ?? []) + SHA256.hash(mint.key.x963)
    return HeaderFields([
      .init(name: "X-App-Assert-KeyId", value: keyID),
      .init(name: "X-App-Assert-Data", value: Base64.encode(try mint.key.signature(for: message, digest: .sha256))),
      .init(name: "X-App-Assert-Nonce", value: nonce),
    ])
  }
}

extension Visitor {
  func register(_ device: AndroidDevice, nonce: String) async throws -> Response {
    let chain = try device.chain(over: nonce)
    return try await register(chain: chain, nonce: nonce)
  }

  func register(chain: [String], nonce: String) async throws -> Response {
    let list = chain.map { "\"\($0)\"" }.joined(separator: ",")
    return try await register(json: "{\"platform\":\"android\",\"chain\":[\(list)],\"nonce\":\"\(nonce)\"}")
  }

  func registeredAndroidDevice() async throws -> AndroidDevice {
    let device = try AndroidDevice()
    let response = try await register(device, nonce: try await challenge())
    guard response.status == 200 else { throw Unexpected(response: response) }
    return device
  }
}

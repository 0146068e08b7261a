internal import AppAttest
public import ByteCoding
public import Cryptography
internal import Locking

/// Stands for Apple's data service: verifies requests as strictly, counts the keys of each simulated device, and signs
/// receipts with the risk metric.
///
/// A receipt says how many keys its device had attested, since this service takes no part in attestations as Apple does.
public final class SimulatedDataService: Sendable {
  /// An answer that is chosen beforehand.
  public enum Answer: Sendable, Hashable {
    /// The answer of the real service.
    case genuine
    case status(Int)
    /// 200 with text that is no receipt.
    case garbage
    /// 200 with a receipt of another key.
    case otherKey
    /// 302 to another place.
    case redirect
  }

  /// An answer, and what a person should read about it.
  public struct Reply: Sendable, Hashable {
    public let status: Int
    public let body: [UInt8]
    public let note: String

    init(_ status: Int, _ body: [UInt8] = [], _ note: String) {
      (self.status, self.body, self.note) = (status, body, note)
    }
  }

  /// The time for which the service keeps data of a device after its last attestation.
  static let memory = Duration.seconds(30 * 86400)

  private struct Device {
    var keys: Set<[UInt8]> = []
    /// The greatest number of attested keys that a receipt says.
    var attested = 0
    var lastAttestation: Timestamp
  }

  private let authority: TestAuthority
  private let authorization: SimulatedAuthorization
  private let verifier: ReceiptVerifier
  private let pause: Duration
  private let now: @Sendable () -> Timestamp
  private let devices = LockedValue<[[UInt8]: Device]>([:])

  /// - Parameters:
  ///   - keyID: The `kid` that requests must have.
  ///   - publicKey: Its key.
  ///   - pause: The time from a new receipt to its "not before". Apple's is about a day.
  public init(
    authority: TestAuthority, keyID: String, publicKey: P256PublicKey, pause: Duration = .seconds(86400),
    now: @escaping @Sendable () -> Timestamp = { .now() }
  ) {
    self.authority = authority
    authorization = SimulatedAuthorization(
      teamID: String(authority.appID.prefix { $0 != "." }), keyID: keyID, publicKey: publicKey)
    verifier = ReceiptVerifier(roots: [authority.receiptRoot.certificate])
    (self.pause, self.now) = (pause, now)
  }

  /// Answers `POST /v1/attestationData`.
  public func reply(to body: [UInt8], authorization text: String?, as answer: Answer = .genuine) -> Reply {
    switch answer {
    case .status(let status): return Reply(status, [], "as scripted")
    case .redirect: return Reply(302, [], "as scripted")
    case .garbage: return Reply(200, Array("this is no receipt".utf8), "garbage, as scripted")
    case .genuine, .otherKey: break
    }
    let now = now()
    if let fault = authorization.fault(of: text, at: now) { return Reply(401, [], fault) }
    guard let bytes = Base64.decode(String(decoding: body, as: UTF8.self)) else {
      return Reply(400, [], "the body is not base64")
    }
    let receipt: Receipt
    do throws(ReceiptRejection) {
      receipt = try Receipt(bytes)
      try verifier.verify(receipt, for: try expectation(of: receipt), at: now)
    } catch {
      return Reply(400, [], "\(error)")
    }
    if let notBefore = receipt.renewableFrom, now < notBefore { return Reply(304, [], "not before \(notBefore)") }
    return renewed(receipt, bytes, answer, at: now)
  }

  /// Of the authority's app, in the environment of simulated devices. The key is that of the receipt.
  private func expectation(of receipt: Receipt) throws(ReceiptRejection) -> ReceiptExpectation {
    guard let app = AppID(authority.appID) else { throw .missingField(.appID) }
    return ReceiptExpectation(appID: app, publicKey: receipt.publicKey, environment: .development)
  }

  private func renewed(_ receipt: Receipt, _ bytes: [UInt8], _ answer: Answer, at now: Timestamp) -> Reply {
    do throws(CryptographyError) {
      guard let signed = try? SignedData(bytes), var content = ReceiptContent(decoding: signed.content) else {
        return Reply(400, [], "the receipt has no fields")
      }
      let name = content[text: 5].flatMap { SimulatedDeviceName(token: $0) }
      let device = name?.bytes ?? receipt.publicKey
      guard let metric = count(receipt, of: device, having: Int(name?.attestedKeys ?? 1), at: now) else {
        return Reply(404, [], "no attestation on this device for 30 days")
      }
      content.renew(metric: metric, notBefore: now.advanced(by: pause), at: now)
      let app = SimulatedApp(appID: authority.appID)
      let mint = AttestationMint(authority: authority, app: app)
      let renewed =
        answer == .otherKey
        ? try mint.riskReceipt(of: P256PrivateKey(), metric: UInt32(clamping: metric), at: now)
        : try mint.receipt(content)
      let names = "device \(Hex.encode(device.prefix(4))), key \(Hex.encode(SHA256.hash(receipt.publicKey).prefix(4)))"
      return Reply(200, Array(Base64.encode(renewed).utf8), "metric \(metric), \(names)")
    } catch {
      return Reply(500, [], "\(error)")
    }
  }

  /// Notes the key of `receipt` and returns the number of keys of the device; `nil` if it attested none for 30 days.
  private func count(_ receipt: Receipt, of device: [UInt8], having number: Int, at now: Timestamp) -> Int? {
    devices.withLock { devices in
      // Leaves are valid from a day before the attestation.
      let attestation = receipt.attestedCertificate.notBefore.advanced(by: .seconds(86400))
      var known = devices[device] ?? Device(lastAttestation: attestation)
      known.keys.insert(receipt.publicKey)
      known.attested = max(known.attested, number)
      known.lastAttestation = max(known.lastAttestation, attestation)
      devices[device] = known
      return now.since(known.lastAttestation) > Self.memory ? nil : max(known.keys.count, known.attested)
    }
  }
}

extension ReceiptContent {
  /// Makes the content of the next receipt of this one's key.
  fileprivate mutating func renew(metric: Int, notBefore: Timestamp, at instant: Timestamp) {
    self[text: 6] = "RECEIPT"
    self[text: 17] = String(metric)
    self[text: 19] = Self.milliseconds(notBefore)
    setTimes(created: instant)
  }
}

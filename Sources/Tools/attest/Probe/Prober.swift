internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import Foundation
internal import SimulatedDevice
internal import Transport
internal import TransportEngine

/// The means of attacks: connections to a gate, and a device that the gate may or may not know.
final class Prober: Sendable {
  let address: GateURL
  /// Vouches for the devices; the gate trusts it if the user named it.
  let authority: TestAuthority
  let app: SimulatedApp
  let isAuthorityTrusted: Bool
  /// An audience of the gate's tokens; `nil` to try no attacks with tokens.
  let audience: String?
  /// A device with App Attest. It is the honest one if `honestAndroid` is `nil`.
  let iPhone: AppAttestProbeDevice
  private let honestAndroid: AndroidProbeDevice?
  private let transport: EngineTransport

  /// - Parameters:
  ///   - authority: The authority that the gate trusts; `nil` makes one that the gate does not trust.
  ///   - model: The kind of the honest device; `nil` without an authority, for an iPhone.
  ///   - audience: An audience of the gate's tokens.
  init(
    _ address: GateURL, authority: TestAuthority?, model: Device.Model?, audience: String? = nil,
    transport: EngineTransport
  ) throws(Failure) {
    self.address = address
    self.audience = audience
    self.transport = transport
    isAuthorityTrusted = authority != nil
    if let authority {
      self.authority = authority
    } else {
      self.authority = try Self.unknownAuthority(for: "ABCDE12345.com.example.app")
    }
    var app = SimulatedApp(appID: self.authority.appID, environment: .development, claims: AppClaims())
    if case .ios(let named) = model { app = named }
    self.app = app
    iPhone = try Self.make { [app] () throws(CryptographyError) in try AppAttestProbeDevice(app: app) }
    guard case .android(let profile) = model else {
      honestAndroid = nil
      return
    }
    let vouching = try self.authority.androidAuthority()
    honestAndroid = try Self.make { () throws(CryptographyError) in
      try AndroidProbeDevice(authority: vouching, profile: profile)
    }
  }

  private static func make<Device>(_ body: () throws(CryptographyError) -> Device) throws(Failure) -> Device {
    do throws(CryptographyError) { return try body() } catch { throw Failure(cryptography: error) }
  }

  /// The platform whose devices are imitated.
  var platform: Platform { honestAndroid == nil ? .ios : .android }

  /// The honest device: `beHonest` registers it with the gate, if the gate trusts `authority`.
  var device: any ProbeDevice {
    if let honestAndroid { return honestAndroid }
    return iPhone
  }

  /// The honest device of an attack on Android, which is tried only with one.
  var android: AndroidProbeDevice {
    get throws(Failure) {
      guard let honestAndroid else { throw Failure(.internalError, "there is no Android device") }
      return honestAndroid
    }
  }

  /// An authority that no gate trusts.
  static func unknownAuthority(for appID: String) throws(Failure) -> TestAuthority {
    do {
      return try TestAuthority(appID: appID, at: .now())
    } catch {
      throw Failure(.internalError, "no authority can be made: \(error)")
    }
  }

  // MARK: Connections

  /// Sends `bytes` on a new connection and returns the reply.
  func send(_ bytes: [UInt8]) async throws(Failure) -> Reply { Reply(try await exchange(bytes)) }

  /// Returns the bytes that arrive within five seconds.
  func exchange(_ bytes: [UInt8]) async throws(Failure) -> RawAnswer {
    do throws(TransportError) {
      let connection = try await transport.open(address)
      do throws(ClientError) {
        return try await connection.exchange(bytes, timeout: .seconds(5))
      } catch {
        // Closed before anything was sent, as a server does whose patience was short.
        return RawAnswer(bytes: [])
      }
    } catch {
      throw Failure(error)
    }
  }

  /// Sends an opening handshake with these additional fields.
  func upgrade(_ fields: [String]) async throws(Failure) -> Reply {
    try await send(Self.head(["GET \(address.target) HTTP/1.1"] + handshake + fields))
  }

  /// The fields of a valid opening handshake.
  var handshake: [String] {
    [
      "Host: \(address.hostField)", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
  }

  /// Returns a head of these lines, followed by `body`.
  static func head(_ lines: [String], body: String = "") -> [UInt8] {
    Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8)
  }

  // MARK: The gate's protocol

  /// A fresh nonce: 64 hex digits.
  func challenge() async throws(Failure) -> String {
    let answer = try await exchange(
      Self.head(["GET /attest/challenge HTTP/1.1", "Host: \(address.hostField)", "Connection: close"]))
    guard let nonce = Self.object(in: answer)?["nonce"] as? String else {
      let reply = Reply(answer)
      if reply.isBusy {
        throw Failure(.retryLater, "\(address.gateName) is too busy to say: \(reply.text)", hint: Self.patience)
      }
      throw Failure(
        .protocolFault, "\(address.gateName) gives no challenge: \(reply.text)",
        hint: "the address has to be that of a sallyport gate")
    }
    return nonce
  }

  /// The JSON object in the body of `answer`; `nil` if there is none.
  static func object(in answer: RawAnswer) -> [String: Any]? {
    let text = String(decoding: answer.bytes, as: UTF8.self)
    let body = text.firstRange(of: "\r\n\r\n").map { text[$0.upperBound...] } ?? ""
    return try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
  }

  /// The hint for a gate with limits for an address.
  static let patience = "wait a minute and try again, or raise limits.per_ip of the gate while it is probed"

  /// Registers the key of `device` or, for `keyID`, another one. `text` encodes key id and attestation.
  func register(
    _ device: AppAttestProbeDevice, attestation: [UInt8], nonce: String, keyID: String? = nil,
    _ text: ([UInt8]) -> String = { Base64.encode($0) }
  ) async throws(Failure) -> Reply {
    let body = JSONOutput.line([
      "keyId": keyID ?? text(device.keyIDBytes), "attestation": text(attestation), "nonce": nonce,
    ])
    return try await post(body)
  }

  /// Registers the key of a chain. `text` encodes each certificate.
  func register(
    chain: [[UInt8]], nonce: String, platform: String = "android",
    _ text: ([UInt8]) -> String = { Base64.encode($0) }
  ) async throws(Failure) -> Reply {
    let body = ChainRegistration(platform: platform, chain: chain.map(text), nonce: nonce)
    return try await post(JSONOutput.line(body))
  }

  private struct ChainRegistration: Encodable {
    let platform: String
    let chain: [String]
    let nonce: String
  }

  func post(_ body: String) async throws(Failure) -> Reply {
    try await send(
      Self.head(
        [
          "POST /attest/register HTTP/1.1", "Host: \(address.hostField)", "Connection: close",
          "Content-Type: application/json", "Content-Length: \(body.utf8.count)",
        ], body: body))
  }

  /// Returns the fields of valid credentials if the gate knows a device, otherwise none: the attacked part is then
  /// refused before credentials are checked.
  func credentials() async throws(Failure) -> [String] {
    guard isAuthorityTrusted else { return [] }
    return try device.lines(over: try await challenge())
  }
}

extension Failure {
  init(cryptography error: CryptographyError) { self.init(.internalError, "OpenSSL: \(error)") }
}

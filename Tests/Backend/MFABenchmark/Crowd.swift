import AsyncHTTPClient
import ByteCoding
import Crypto
import Foundation
import NIOCore
import NIOHTTP1

/// Signs identities like the gate.
struct SigningGate: Sendable {
  private let key = P256.Signing.PrivateKey()

  var jwks: String {
    let raw = Array(key.publicKey.rawRepresentation)
    let (x, y) = (Base64URL.encode(raw.prefix(32)), Base64URL.encode(raw.suffix(32)))
    return #"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"bench","x":"\#(x)","y":"\#(y)"}]}"#
  }

  /// Returns an identity for the request of the device `subject` with this method and target.
  func assertion(for subject: String, _ method: String, _ target: String) throws -> String {
    let now = Int(Date().timeIntervalSince1970)
    let head = Base64URL.encode(Array(#"{"alg":"ES256","typ":"JWT","kid":"bench"}"#.utf8))
    let hash = Base64URL.encode(SHA256.hash(data: Data(target.utf8)).map { $0 })
    let claims = Base64URL.encode(
      Array(
        """
        {"iss":"bench","aud":"mfa","sub":"\(subject)","jti":"\(UUID().uuidString)","iat":\(now),"exp":\(now + 60),\
        "method":"app-attest","htm":"\(method)","target":"\(hash)","env":"production","app":"T.bench",\
        "sid":"s","client_ip":"192.0.2.1"}
        """.utf8))
    let text = head + "." + claims
    return text + "." + Base64URL.encode(Array(try key.signature(for: Data(text.utf8)).rawRepresentation))
  }
}

/// Devices that sign in or read, each one request after the other.
struct Crowd: Sendable {
  /// What the devices do.
  enum Work: String, Sendable {
    /// Sign in: two requests with effects.
    case signIns = "sign-ins"
    /// Ask for the state of a device: one request without effects.
    case reads
  }

  fileprivate struct Device: Sendable {
    let name: String
    let port: Int
    let key = P256.Signing.PrivateKey()
  }

  private let devices: [Device]
  private let gate: SigningGate
  private let client: HTTPClient

  /// Enrols the devices, and spreads them over the backends at `ports`.
  init(count: Int, gate: SigningGate, ports: [Int]) async throws {
    devices = (0..<count).map { Device(name: "device-\($0)", port: ports[$0 % ports.count]) }
    self.gate = gate
    var configuration = HTTPClient.Configuration()
    // The backend rounds the time of answers without a session up to a multiple of 10 ms. Every device has its own
    // connection, so no request waits for one in addition.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = count
    client = HTTPClient(configuration: configuration)
    for device in devices {
      let key = device.key.publicKey.x963Representation.base64EncodedString()
      _ = try await send(
        "POST", "mfa/enroll", "{\(device.naming),\"method\":\"secureEnclave\",\"publicKey\":\"\(key)\"}", as: device)
    }
  }

  func close() async throws { try await client.shutdown() }

  /// Returns the number of times that the work was done within `duration`.
  func run(_ work: Work, for duration: Duration) async throws -> Int {
    let end = ContinuousClock.now + duration
    return try await withThrowingTaskGroup { group in
      for device in devices {
        group.addTask {
          var count = 0
          while ContinuousClock.now < end {
            switch work {
            case .signIns: try await signIn(device)
            case .reads: _ = try await send("GET", "device/\(device.name)/status", nil, as: device)
            }
            count += 1
            // Without this pause, the backend's rate limit would refuse the device.
            try await Task.sleep(for: .milliseconds(work == .reads ? 50 : 100))
          }
          return count
        }
      }
      return try await group.reduce(0, +)
    }
  }

  /// Signs in without pauses, within `duration`, and returns the times of the sign-ins in ascending order. Sign-ins that
  /// fail are not among them.
  func signInTimes(for duration: Duration) async -> [Duration] {
    let end = ContinuousClock.now + duration
    return await withTaskGroup { group in
      for device in devices {
        group.addTask {
          var times: [Duration] = []
          while case let start = ContinuousClock.now, start < end {
            if (try? await signIn(device)) != nil { times.append(.now - start) }
          }
          return times
        }
      }
      return await group.reduce([], +).sorted()
    }
  }

  private struct DeviceChallenge: Decodable { let challenge: String, challengeId: String }

  private func signIn(_ device: Device) async throws {
    let answer = try await send("POST", "auth/initiate", "{\(device.naming)}", as: device)
    let challenge = try JSONDecoder().decode(DeviceChallenge.self, from: answer)
    let signature = try device.key.signature(for: Data(Base64.decode(challenge.challenge) ?? []))
    _ = try await send(
      "POST", "auth/verify-signature",
      "{\(device.naming),\"challengeId\":\"\(challenge.challengeId)\","
        + "\"signature\":\"\(signature.derRepresentation.base64EncodedString())\"}",
      as: device)
  }

  struct Refused: Error { let status: UInt, text: String }

  private func send(_ method: String, _ path: String, _ body: String?, as device: Device) async throws -> Data {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(device.port)/api/v1/\(path)")
    request.method = HTTPMethod(rawValue: method)
    request.headers.add(
      name: "X-Attest-Assertion", value: try gate.assertion(for: device.name, method, "/api/v1/\(path)"))
    if let body {
      request.headers.add(name: "Content-Type", value: "application/json")
      request.body = .bytes(ByteBuffer(string: body))
    }
    let response = try await client.execute(request, timeout: .seconds(30))
    let answer = Data(try await response.body.collect(upTo: 1 << 16).readableBytesView)
    guard response.status == .ok else {
      throw Refused(status: response.status.code, text: String(decoding: answer, as: UTF8.self))
    }
    return answer
  }
}

extension Crowd.Device {
  fileprivate var naming: String { "\"username\":\"user-\(name)\",\"deviceId\":\"\(name)\"" }
}

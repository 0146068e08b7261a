import AsyncHTTPClient
import ByteCoding
import Crypto
import Foundation
import NIOCore
import NIOHTTP1
import TestSupport

/// Sends each operation of a backend that runs under callgrind ordinary requests, and the most expensive ones that it
/// reads.
struct Costs {
  /// What the backend reads: a body of 64 KiB, and a head with room for the other fields.
  private static let mostBody = 65_536
  private static let mostValue = 7_000
  private static let ordinary = "ordinary"

  private struct Kind {
    let endpoint: String
    let input: String
    let make: () async throws -> HTTPClientRequest
  }

  /// An app instance that has enrolled a device.
  private struct Device {
    let name: String
    let key = P256.Signing.PrivateKey()

    var members: [String: String] { ["username": "user-\(name)", "deviceId": name] }
  }

  private let gate: SigningGate
  private let process: ChildProcess
  private let port: Int
  private let client: HTTPClient
  private let device = Device(name: "device")

  /// - Parameter process: The backend, started by `valgrind --tool=callgrind`.
  init(of process: ChildProcess, at port: Int, gate: SigningGate) {
    (self.process, self.port, self.gate) = (process, port, gate)
    client = HTTPClient()
  }

  /// Prints a line for each kind: operation, tab, input. Before and after the requests of each kind, callgrind writes a
  /// profile. So every second profile is that of a kind.
  func measure(count: Int) async throws {
    _ = try await send([try enrolment(of: device)], mustSucceed: true)
    let kinds = kinds()
    // What a backend does once only.
    for kind in kinds where kind.input == Self.ordinary { try await send([try await kind.make()]) }
    for kind in kinds {
      var requests: [HTTPClientRequest] = []
      for _ in 0..<count { requests.append(try await kind.make()) }
      print("\(kind.endpoint)\t\(kind.input)")
      try await dump()
      try await send(requests)
      try await dump()
    }
    try await client.shutdown()
  }

  private func dump() async throws {
    let run = try await ChildProcess.run(
      Places.tool("callgrind_control"), ["--dump", String(process.id)], within: .seconds(60))
    guard run.exit == .code(0) else { throw NoProfile(lines: run.output + run.errors) }
  }

  struct NoProfile: Error { let lines: [String] }

  private func send(_ requests: [HTTPClientRequest], mustSucceed: Bool = false) async throws {
    for request in requests {
      let response = try await client.execute(request, timeout: .seconds(120))
      let body = try await response.body.collect(upTo: 1 << 20)
      guard !mustSucceed || response.status == .ok else {
        throw Crowd.Refused(status: response.status.code, text: String(buffer: body))
      }
    }
  }

  // MARK: Kinds

  /// All kinds, the ordinary one of an operation before the others.
  private func kinds() -> [Kind] {
    var kinds: [Kind] = []
    for (path, members) in operations() {
      let endpoint = "POST /\(path)"
      kinds.append(Kind(endpoint: endpoint, input: Self.ordinary) { try post(path, try await members()) })
      for (input, body) in Self.bodies {
        kinds.append(Kind(endpoint: endpoint, input: input) { try post(path, body: body) })
      }
      for name in Self.members {
        kinds.append(
          Kind(endpoint: endpoint, input: "marks in \(name)") {
            try post(path, try await members().merging([name: Self.marks(60_000)]) { $1 })
          })
      }
      for name in Self.fields {
        kinds.append(
          Kind(endpoint: endpoint, input: "marks in \(name)") {
            var request = try post(path, try await members())
            request.headers.replaceOrAdd(name: name, value: Self.marks(Self.mostValue))
            return request
          })
      }
    }
    let status = "device/\(device.name)/status"
    kinds.append(Kind(endpoint: "GET /device/NAME/status", input: Self.ordinary) { try request("GET", status) })
    for (input, path) in [
      ("a name of marks", "device/\(Self.escapes(4800))/status"),
      ("2,000 items in the query", status + "?" + (0..<2000).map { "\($0)=" }.joined(separator: "&").prefix(5000)),
      ("a query of marks", status + "?a=" + Self.escapes(4800)),
    ] {
      kinds.append(Kind(endpoint: "GET /device/NAME/status", input: input) { try request("GET", String(path)) })
    }
    return kinds
  }

  private func operations() -> [(path: String, members: () async throws -> [String: String])] {
    [
      ("mfa/enroll", { enrolling(Device(name: UUID().uuidString)) }),
      ("auth/initiate", { device.members }),
      ("auth/verify-signature", { try await signature() }),
      ("auth/request-otp", { ["username": "user-\(UUID())", "phoneNumber": "+15550100"] }),
      ("auth/verify-otp", { ["username": "user-\(UUID())", "otp": "000000"] }),
      ("mfa/recovery", { ["username": "user-\(UUID())", "code": "ABCDEFGH"] }),
    ]
  }

  private func enrolling(_ device: Device) -> [String: String] {
    let key = device.key.publicKey.x963Representation.base64EncodedString()
    return device.members.merging(["method": "secureEnclave", "publicKey": key]) { $1 }
  }

  private func enrolment(of device: Device) throws -> HTTPClientRequest { try post("mfa/enroll", enrolling(device)) }

  private struct DeviceChallenge: Decodable { let challenge: String, challengeId: String }

  /// The members that answer a new challenge.
  private func signature() async throws -> [String: String] {
    let response = try await client.execute(try post("auth/initiate", device.members), timeout: .seconds(60))
    let answer = Data(try await response.body.collect(upTo: 1 << 16).readableBytesView)
    let challenge = try JSONDecoder().decode(DeviceChallenge.self, from: answer)
    let signature = try device.key.signature(for: Data(Base64.decode(challenge.challenge) ?? []))
    return device.members.merging([
      "challengeId": challenge.challengeId, "signature": signature.derRepresentation.base64EncodedString(),
    ]) { $1 }
  }

  private func post(_ path: String, _ members: [String: String]) throws -> HTTPClientRequest {
    try post(path, body: String(decoding: try JSONEncoder().encode(members), as: UTF8.self))
  }

  private func post(_ path: String, body: String) throws -> HTTPClientRequest {
    var request = try request("POST", path)
    request.headers.add(name: "Content-Type", value: "application/json")
    request.body = .bytes(ByteBuffer(bytes: Array(body.utf8.prefix(Self.mostBody))))
    return request
  }

  private func request(_ method: String, _ path: String) throws -> HTTPClientRequest {
    let target = "/api/v1/\(path)"
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(target)")
    request.method = HTTPMethod(rawValue: method)
    request.headers.add(name: "X-Attest-Assertion", value: try gate.assertion(for: device.name, method, target))
    return request
  }

  // MARK: Expensive parts

  private static let members = [
    "username", "deviceId", "method", "publicKey", "challengeId", "signature", "phoneNumber", "otp", "code", "other",
  ]
  private static let fields = [
    "X-Attest-Assertion", "Authorization", "Accept", "Content-Type", "traceparent", "Idempotency-Key",
  ]

  /// Combining marks of two classes in the wrong order, which normalizing has to sort: at most `count` bytes.
  private static func marks(_ count: Int) -> String {
    "a" + String(repeating: "\u{301}", count: (count - 1) / 4) + String(repeating: "\u{323}", count: (count - 1) / 4)
  }

  /// The same, percent-encoded in at most `count` bytes.
  private static func escapes(_ count: Int) -> String {
    "a" + String(repeating: "%CC%81", count: count / 12) + String(repeating: "%CC%A3", count: count / 12)
  }

  private static let bodies: [(input: String, body: String)] = [
    ("a name of marks", "{\"\(marks(54_000))\":0,\(list(900) { "\"\($0)\":0" })}"),
    ("names of marks", "{\(list(250) { "\"\($0)\(marks(240))\":0" })}"),
    ("6,000 names", "{\(list(6000) { "\"\($0)\":0" })}"),
    ("32,000 numbers", "{\"username\":[\(list(32_000) { _ in "0" })]}"),
    ("a number of 65,000 digits", "{\"username\":\(String(repeating: "7", count: 65_000))}"),
    ("30,000 levels", String(repeating: "[", count: 30_000) + String(repeating: "]", count: 30_000)),
    ("escapes", "{\"username\":\"\(String(repeating: #"\u0301"#, count: 10_900))\"}"),
    ("blanks", String(repeating: " ", count: 65_000) + "{}"),
  ]

  private static func list(_ count: Int, _ element: (Int) -> String) -> String {
    (0..<count).map(element).joined(separator: ",")
  }
}

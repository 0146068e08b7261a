import AppAttest
import AttestGate
import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// A gate with an admin socket, a metrics listener and an echo server as its upstream.
struct ObservabilityBench {
  let gate: GateProcess
  let visitor: Visitor
  let metrics: MetricsPort
  var configuration: String { gate.folder.path + "/gate.yaml" }

  static func serving<R>(_ body: (ObservabilityBench) async throws -> R) async throws -> R {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      plan.further = #"metrics: { listen: "127.0.0.1:0" }"#
      return try await GateProcess.serving(plan) { gate in
        try await body(
          ObservabilityBench(gate: gate, visitor: try Visitor(to: gate), metrics: try await MetricsPort(of: gate)))
      }
    }
  }

  /// Returns an answer of the admin socket.
  func ask(_ method: String, _ target: String, accept: String = "*/*") async throws -> Response {
    let connection = try await ClientEngine().connect(socket: gate.folder.path + "/admin.sock")
    return try await connection.send(
      method, target,
      headers: HeaderFields([.init(name: "Host", value: "localhost"), .init(name: "Accept", value: accept)]))
  }

  /// Returns a phone whose key is registered.
  func registeredPhone() async throws -> (phone: Phone, hash: String) {
    let phone = try Phone(of: gate.authority)
    try await visitor.register(phone)
    return (phone, KeyHash(of: try #require(KeyID(base64: phone.keyID))).text)
  }

  /// Sends requests that are refused with different codes, and returns the codes.
  func refuseInManyWays() async throws -> Set<String> {
    var codes: Set<String> = []
    for (method, path, body) in [
      ("GET", "/.well-known/sallyport/none", ""), ("POST", "/attest/challenge", ""), ("GET", "/plain", ""),
      ("POST", "/attest/register", "x"),
      ("POST", "/attest/register", #"{"keyId":"x","attestation":"x","nonce":"x"}"#),
    ] {
      let answer = try await visitor.ask(method, path, body: Array(body.utf8))
      codes.insert(try #require(answer.headers.first("X-Attest-Error"), "\(method) \(path)"))
    }
    let (phone, _) = try await registeredPhone()
    let used = try phone.credentials(over: await visitor.challenge(), counter: 5)
    _ = try await visitor.open("/", used)
    let unknown = try Phone(of: gate.authority)
    for credentials in [
      HeaderFields(), HeaderFields([.init(name: "Origin", value: "http://evil.example")]), used,
      try phone.credentials(over: await visitor.challenge(), counter: 5),
      try unknown.credentials(over: await visitor.challenge(), counter: 1),
    ] {
      codes.insert(try #require(try await visitor.refusal(of: credentials)))
    }
    return codes
  }

  /// Runs `sallyport` with the gate's configuration.
  func sallyport(_ arguments: [String]) async throws -> (status: Int32?, output: [String], errors: [String]) {
    let (exit, output, errors) = try await ChildProcess.run(
      Places.product("sallyport"), arguments + ["-c", configuration])
    return (exit.code, output, errors)
  }
}

extension Response {
  var text: String { String(decoding: body, as: UTF8.self) }
}

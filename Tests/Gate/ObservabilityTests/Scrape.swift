import Foundation
import GateProcesses
import TestSupport
import Transport
import TransportEngine

/// A gate's metrics, as Prometheus' own parser reads them.
struct Scrape {
  struct Sample: Decodable {
    let name: String
    let kind: String
    let labels: [String: String]
    let value: String
  }

  let text: String
  let samples: [Sample]

  /// Parses `text` with Prometheus' own parser; throws if that refuses it.
  init(_ text: String) async throws {
    self.text = text
    let (exit, output, errors) = try await ChildProcess.run(
      "/usr/bin/python3", [ProjectFile.path("Tests/Gate/Programs/exposition.py")], input: Array(text.utf8),
      environment: ["PYTHONDONTWRITEBYTECODE": "1"])
    guard exit == .code(0) else { throw Unexpected("metrics refused: \(errors.joined(separator: "\n"))\n\(text)") }
    samples = try output.map { try JSONDecoder().decode(Sample.self, from: Data($0.utf8)) }
  }

  /// Returns the value of the sample with exactly these labels; `nil` if there is none.
  func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
    samples.first { $0.name == name && $0.labels == labels }.flatMap { Double($0.value) }
  }
}

/// The metrics listener of a gate.
struct MetricsPort {
  let port: UInt16

  /// - Parameter gate: A gate with `metrics: { listen: "127.0.0.1:0" }`.
  init(of gate: GateProcess) async throws {
    let line = try await gate.process.errors.first("the metrics port") {
      $0.contains(#""message":"metrics server listening""#)
    }
    port = try GateProcess.lastNumber(in: line, after: #""address":""#)
  }

  func ask(_ method: String, _ target: String) async throws -> Response {
    try await ClientEngine().connect(host: "127.0.0.1", port: port, tls: nil)
      .send(method, target, headers: HeaderFields([.init(name: "Host", value: "localhost")]))
  }

  func scrape() async throws -> Scrape {
    let answer = try await ask("GET", "/metrics")
    guard answer.status == 200, answer.headers.first("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    else { throw Unexpected("/metrics: \(answer.status) \(answer.headers)") }
    return try await Scrape(String(decoding: answer.body, as: UTF8.self))
  }

  /// Reads the metrics until `isReached` is true, for at most 20 s: the gate updates some metrics shortly after its
  /// peers have their answer.
  func scrape(until isReached: (Scrape) -> Bool) async throws -> Scrape {
    let end = ContinuousClock.now + .seconds(120)
    while true {
      let scrape = try await scrape()
      if isReached(scrape) || .now > end { return scrape }
    }
  }
}

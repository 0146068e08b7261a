import Foundation
import GateService
import Logging
import Observability
import TestSupport
import Testing
import Transport
import TransportEngine

@testable import GateRuntime

@Suite("The log of the engine's events")
struct EngineLogTests {
  private static let address = SocketAddress.ipv4([192, 0, 2, 7], port: 1)

  /// Returns the messages of `events` at a log level, and the counters that are not 0.
  private func written(_ events: [EngineEvent], at level: Logger.Level) async throws -> ([String], [String: Double]) {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/log"
      try Data().write(to: URL(fileURLWithPath: path))
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      let sink = LineSink(descriptor: file.fileDescriptor)
      var logger = Logger(label: "test") { JSONLineHandler(label: $0, sink: sink) }
      logger.logLevel = level
      let registry = MetricsRegistry()
      let log = EngineLog(logger: logger, metrics: GateMetrics(registry: registry))
      for event in events { log.write(event) }
      sink.flush()
      let messages = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").compactMap {
        (try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])?["message"] as? String
      }
      var counts: [String: Double] = [:]
      for family in await registry.snapshot() {
        for sample in family.samples where family.name.hasPrefix("sallyport_connections") {
          counts[sample.labels.joined()] = sample.value == 0 ? nil : sample.value
        }
        for sample in family.samples where family.name.hasPrefix("sallyport_tls_handshake_failures") {
          counts["failures"] = sample.value == 0 ? nil : sample.value
        }
      }
      return (messages, counts)
    }
  }

  @Test("A connection that closes without a byte has a label of its own, and a line only at the level debug")
  func unused() async throws {
    let events = [EngineEvent](repeating: .connectionUnused(address: Self.address), count: 20)
    let (lines, counts) = try await written(events, at: .info)
    #expect(lines == [] && counts == ["unused": 20])
    let (all, _) = try await written(events, at: .debug)
    #expect(all == [String](repeating: "connection closed unused", count: 20))
  }

  @Test("A handshake that breaks off is a failed one")
  func failed() async throws {
    let (lines, counts) = try await written([.handshakeFailed(address: Self.address, reason: "closed")], at: .info)
    #expect(lines == ["TLS handshake failed"] && counts == ["failures": 1])
  }
}

import Foundation
import Glibc
import Locking
import TestSupport
import Testing
import Transport
import TransportEngine

@testable import attest

/// The output of `attest load --json`.
private struct Report: Decodable {
  struct Latency: Decodable { let p50, p90, p99, p999, max: Double }

  let mode: String
  let count: Int
  let losses: Int
  let mismatches: Int
  let latencyMicroseconds: Latency?

  init(_ outcome: Outcome) throws { self = try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8)) }
}

@Suite("attest load and a gate", .serialized)
struct LoadCommandTests {
  @Test(
    "Each message is sent after the echo of the previous one, and every byte is compared",
    arguments: [(size: "0", connections: 3), ("64", 5), ("16KiB", 3), ("256KiB", 2)])
  func pingPong(size: String, connections: Int) async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest(
      "load", setup.url, "-c", "\(connections)", "--messages", "20", "--size", size, "--verify", "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let report = try Report(outcome)
    #expect(report.mode == "ping-pong")
    #expect(report.count == connections * 20)
    #expect(report.losses == 0 && report.mismatches == 0)
    let latency = try #require(report.latencyMicroseconds)
    #expect(latency.p50 > 0 && latency.p50 <= latency.p90 && latency.p90 <= latency.p99)
    #expect(latency.p99 <= latency.p999 && latency.p999 <= latency.max)
  }

  @Test("The exact number of messages for a rate is sent")
  func rate() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("load", setup.url, "-c", "7", "-d", "500ms", "--rate", "400", "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try Report(outcome).count == 200)
  }

  @Test("Connections are opened and closed with one assertion each", arguments: ["--connect", "--register"])
  func repeated(mode: String) async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("load", setup.url, "-c", "3", "-d", "500ms", mode, "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let report = try Report(outcome)
    #expect(report.count > 0)
    #expect(report.losses == 0)
  }

  @Test("Each line of input runs one step over the same sockets, after a line that reports them open")
  func steps() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.place.run(
      ["load", setup.url, "--authority", setup.authority, "-c", "2", "--messages", "3", "--step", "--json"],
      input: "\n")
    let lines = outcome.output.split(separator: "\n")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(lines.count == 2)
    #expect(lines.first == #"{"event":"open 2"}"#)
    #expect(lines.last?.contains(#""count":6"#) == true)
  }

  @Test("Each line of input runs one step, also if all lines arrive together")
  func manySteps() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.place.run(
      ["load", setup.url, "--authority", setup.authority, "--messages", "1", "--step", "--json"], input: "\n\n\nlast")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.split(separator: "\n").count == 1 + 4)
  }

  @Test("A message that was given up in one step and comes back in the next one is not taken for its answer")
  func lateMessage() async throws {
    let backend = try Backend(holdsFirst: true) { $0 }
    defer { backend.stop() }
    let setup = try await GateSetup(upstream: backend.url)
    let outcome = try await setup.attest(
      "load", setup.url, "-d", "100ms", "--verify", "--step", "--json", input: "\n\n")
    let reports = try outcome.output.split(separator: "\n").dropFirst().map {
      try JSONDecoder().decode(Report.self, from: Data($0.utf8))
    }
    try #require(reports.count == 2, "\(outcome)")
    #expect(reports[0].count == 0 && reports[0].losses == 1)
    #expect(reports[1].count > 0 && reports[1].losses == 0 && reports[1].mismatches == 0)
    #expect(outcome.errorLines.first == "error: 1 messages did not come back")
  }

  @Test("Each step of a stalled run counts the messages that it sent itself")
  func stalledSteps() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest(
      "load", setup.url, "-d", "20s", "--size", "64KiB", "--stall", "--step", "--json", input: "\n\n")
    let reports = try outcome.output.split(separator: "\n").dropFirst().map {
      try JSONDecoder().decode(Report.self, from: Data($0.utf8))
    }
    try #require(reports.count == 2, "\(outcome)")
    // Nothing reads in between.
    #expect(reports[0].count > 0 && reports[1].count < reports[0].count)
  }

  @Test("A second signal stops the command if messages in transit are not returned")
  func interrupted() async throws {
    let backend = try Backend { _ in nil }
    defer { backend.stop() }
    let setup = try await GateSetup(upstream: backend.url)
    let arguments = ["load", setup.url, "--authority", setup.authority, "-c", "2", "-d", "60s", "--json"]
    let process = try ChildProcess(
      Program.attest.path, arguments, environment: setup.place.environment.mapValues(Optional.some))
    defer { process.kill() }
    try await backend.messages.wait(for: "a message on each socket") { $0 == 2 ? () : nil }
    process.send(SIGINT)
    // Signals in quick succession count as one.
    try await Task.sleep(for: .seconds(1))
    #expect(!process.hasEnded)
    process.send(SIGINT)
    #expect(try await process.exit(within: .seconds(30)).code == 69)
    #expect(try await process.errors.all().first == "error: 2 messages did not come back")
  }

  @Test("A second signal stops the command while a server is silent in the handshake")
  func silentHandshake() async throws {
    let listener = try SilentListener()
    let process = try ChildProcess(
      Program.attest.path, ["load", "wss://127.0.0.1:\(listener.port)/", "--open", "--connect", "-d", "60s"])
    defer { process.kill() }
    #expect(try await Aside { listener.accept() }.value)
    process.send(SIGINT)
    try await Task.sleep(for: .seconds(1))
    #expect(!process.hasEnded)
    process.send(SIGINT)
    #expect(try await process.exit(within: .seconds(30)) == .signal(SIGINT))
  }

  @Test("A protocol violation by the server is reported with a hint")
  func noGate() async throws {
    // More than the maximum size of a response.
    let backend = try TLSBackend(answer: Response(status: 200, body: Array(repeating: 0, count: 2 << 20)))
    defer { backend.stop() }
    let outcome = try await backend.place.run(["load", backend.url, "--ca", backend.authority, "--open", "-d", "1s"])
    #expect(outcome.status == 76)
    #expect(outcome.errorLines.last == "hint: is it a gate that answers at this address?", "\(outcome.errors)")
  }

  @Test("The text output has the number of messages, their latencies, and a histogram by powers of two")
  func text() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("load", setup.url, "-c", "2", "--messages", "10")
    let lines = outcome.output.split(separator: "\n")
    #expect(outcome.status == 0)
    #expect(outcome.errors.isEmpty, "progress belongs on a terminal")
    #expect(lines.first?.hasPrefix("2 connections, 64 bytes a message, ") == true)
    #expect(lines.dropFirst().first?.hasPrefix("20 messages, ") == true)
    #expect(lines.contains { $0.hasPrefix("p50 ") && $0.contains("p99.9 ") })
    let rows = lines.filter { $0.hasPrefix("< ") }.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
    #expect(rows.reduce(0, +) == 20)
  }

  @Test("All devices of a storm come back, also a few at a time", arguments: [[], ["--backoff"], ["--at-once", "2"]])
  func storm(_ options: [String]) async throws {
    let setup = try await GateSetup()
    let arguments = ["load", setup.url, "-c", "5", "-d", "60s", "--storm", "--json", "--authority", setup.authority]
    let outcome = try await setup.place.run(arguments + options)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let report = try Report(outcome)
    #expect(report.mode == "storm" && report.count == 5 && report.losses == 0)
  }

  @Test("A device of a storm that is refused learns how long the gate asks it to wait")
  func retryAfter() async throws {
    let wait = HeaderFields([HeaderFields.Field(name: "Retry-After", value: "7")])
    let backend = try TLSBackend(answer: Response(status: 503, headers: wait))
    defer { backend.stop() }
    let target = try LoadTarget(
      engine: DeviceSession.makeEngine(), tls: ClientTLS(authorityFile: backend.authority),
      address: GateURL(backend.url), authority: nil, model: nil)
    do throws(LoadError) {
      _ = try await target.open(as: nil, number: 0)
      Issue.record("the socket opened")
    } catch {
      #expect(error.retryAfter == .seconds(7))
    }
  }

  @Test(
    "A storm's options are refused without a storm", arguments: ["--backoff", "--at-once=2", "--storm --at-once=0"])
  func notStorm(_ options: String) async throws {
    let place = try Workplace()
    let outcome = try await place.run(
      ["load", "wss://127.0.0.1:1/", "--open"] + options.split(separator: " ").map(String.init))
    #expect(outcome.status == 64)
  }

  @Test("Without an assertion, the command is refused like any client")
  func refused() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("load", setup.url, "--open", "--messages", "1")
    #expect(outcome.status == 77)
    #expect(outcome.errorLines.first?.contains("no_credentials") == true)
  }

  @Test("A refused connection exits with code 69")
  func unreachable() async throws {
    let place = try Workplace()
    let outcome = try await place.run(["load", "wss://127.0.0.1:1/", "--open", "-d", "1s"])
    #expect(outcome.status == 69)
  }

  @Test("If the server fails during the run, the command exits with code 1 and reports the losses")
  func lost() async throws {
    let backend = try Backend { $0 }
    defer { backend.stop() }
    let setup = try await GateSetup(upstream: backend.url)
    async let load = setup.attest("load", setup.url, "-c", "4", "-d", "60s", "--json")
    try await backend.messages.wait(for: "messages on four sockets") { $0 >= 20 ? () : nil }
    try await setup.gate.stop(SIGKILL)
    let outcome = try await load
    #expect(outcome.status == 1, "\(outcome.errors)")
    #expect(try Report(outcome).losses == 4)
    #expect(outcome.errorLines.first?.hasPrefix("error: 4 were lost") == true)
  }

  @Test("Idle sockets that stay open are no losses")
  func idle() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("load", setup.url, "-c", "3", "-d", "300ms", "--idle", "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let report = try Report(outcome)
    #expect(report.mode == "idle" && report.count == 0 && report.losses == 0)
  }

  @Test("If idle sockets are lost, the command exits with code 1 and reports how many")
  func lostWhileIdle() async throws {
    let setup = try await GateSetup()
    let process = try ChildProcess(
      Program.attest.path,
      ["load", setup.url, "--authority", setup.authority, "-c", "3", "--idle", "--step", "--json"],
      environment: setup.place.environment.mapValues(Optional.some))
    defer { process.kill() }
    _ = try await process.output.first("the open sockets") { $0 == #"{"event":"open 3"}"# }
    try await setup.gate.stop(SIGKILL)
    // The loss reaches the command some time after the exit of the gate, so it is asked until then.
    var line = ""
    for step in 1...100 where !line.contains(#""losses":3"#) {
      process.write("\n")
      line = try await process.output.first(step, "report \(step)") { $0.contains(#""mode":"idle""#) }.last ?? ""
      if !line.contains(#""losses":3"#) { try await Task.sleep(for: .milliseconds(50)) }
    }
    #expect(line.contains(#""losses":3"#), "\(line)")
    process.closeInput()
    #expect(try await process.exit() == .code(1))
    #expect(try await process.errors.all().first?.hasPrefix("error: a socket was lost: ") == true)
  }

  @Test(
    "A server that changes the echoed messages is detected",
    arguments: [
      { message in message.dropLast() + [message.last.map { $0 ^ 1 } ?? 0] }, { message in message + [0] },
      { message in message.dropLast() }, { _ in Array(repeating: 0, count: 100) },
    ] as [@Sendable ([UInt8]) -> [UInt8]])
  func changed(change: @escaping @Sendable ([UInt8]) -> [UInt8]) async throws {
    let backend = try Backend(change)
    defer { backend.stop() }
    let setup = try await GateSetup(upstream: backend.url)
    let outcome = try await setup.attest("load", setup.url, "--messages", "5", "--size", "100", "--verify", "--json")
    #expect(outcome.status == 1)
    #expect(try Report(outcome).mismatches == 5)
    #expect(outcome.errorLines.first == "error: 5 messages did not come back as they were sent")
  }
}

/// A TCP server that never sends anything.
private final class SilentListener: Sendable {
  private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  let port: UInt16

  init() throws {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && listen(descriptor, 8) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    try #require(isListening)
    port = UInt16(bigEndian: address.sin_port)
  }

  deinit { close(descriptor) }

  /// Waits for a client to connect and returns whether one has. The connection stays open.
  func accept() -> Bool { Glibc.accept(descriptor, nil, nil) >= 0 }
}

/// An echo server in this process that can change the echoed messages.
private final class Backend: RequestResponder {
  let messages = Watched(0)
  private let change: @Sendable ([UInt8]) -> [UInt8]?
  private let holdsFirst: Bool
  private let engine = LockedValue<Engine?>(nil)

  /// - Parameters:
  ///   - holdsFirst: Whether the first echo of a socket is sent together with the second one.
  ///   - change: Returns the echo of a message; `nil` for no echo.
  init(holdsFirst: Bool = false, _ change: @escaping @Sendable ([UInt8]) -> [UInt8]?) throws {
    (self.holdsFirst, self.change) = (holdsFirst, change)
    let engine = try Engine(listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: nil, responder: self)
    self.engine.withLock { $0 = engine }
  }

  var url: String { "ws://127.0.0.1:\(engine.withLock { $0?.address.port ?? 0 })" }

  func stop() { engine.withLock { $0.take() }?.stop() }

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    .converse(EchoSession(messages: messages, holdsFirst: holdsFirst, change: change))
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400)
  }

  private final class EchoSession: WebSocketSession {
    let subprotocol: String? = nil
    let maxMessage = 1 << 20
    private let messages: Watched<Int>
    private let change: @Sendable ([UInt8]) -> [UInt8]?
    private let socket = LockedValue<WebSocketChannel?>(nil)
    /// The echo that waits for the second one; `nil` if none has to wait any more.
    private let held: LockedValue<[[UInt8]]?>

    init(messages: Watched<Int>, holdsFirst: Bool, change: @escaping @Sendable ([UInt8]) -> [UInt8]?) {
      self.messages = messages
      self.change = change
      held = LockedValue(holdsFirst ? [] : nil)
    }

    func opened(_ socket: WebSocketChannel) { self.socket.withLock { $0 = socket } }
    func closed(code: UInt16?, reason: String) { socket.withLock { $0 = nil } }

    func received(_ message: WebSocketMessage) {
      messages.update { $0 += 1 }
      guard case .binary(let bytes) = message, let answer = change(bytes) else { return }
      let answers = held.withLock { held -> [[UInt8]] in
        guard let first = held else { return [answer] }
        held = first.isEmpty ? [answer] : nil
        return first.isEmpty ? [] : first + [answer]
      }
      for answer in answers { socket.withLock { $0 }?.send(.binary(answer)) }
    }
  }
}

@Suite("Load histogram")
struct HistogramTests {
  @Test(
    "A quantile is exact to 1.6 percent at any magnitude", arguments: [0, 1, 63, 64, 65, 1000, 123_456, 98_765_432_101])
  func precision(value: UInt64) {
    var histogram = Histogram()
    histogram.record(value)
    // A second, greater value, because the maximum bounds each quantile.
    histogram.record(value * 4 + 100)
    let median = histogram.quantile(0.5)
    #expect(median >= value)
    #expect(Double(median - value) <= Double(value) * 0.016)
  }

  @Test("A quantile is the value that a share of the values does not exceed")
  func quantiles() {
    var histogram = Histogram()
    for value in 1...1000 { histogram.record(UInt64(value) * 1000) }
    for (fraction, expected) in [(0.5, 500_000.0), (0.9, 900_000), (0.99, 990_000), (0.999, 999_000)] {
      #expect(abs(Double(histogram.quantile(fraction)) - expected) <= expected * 0.016)
    }
    #expect(histogram.quantile(1) == 1_000_000)
    #expect(histogram.max == 1_000_000)
    #expect(histogram.mean == 500_500)
  }

  @Test("Each value is counted in the row of its power of two")
  func octaves() {
    var histogram = Histogram()
    for value: UInt64 in [0, 63, 64, 127, 128, 600] { histogram.record(value) }
    #expect(histogram.octaves.map(\.below) == [64, 128, 256, 512, 1024])
    #expect(histogram.octaves.map(\.count) == [2, 2, 1, 0, 1])
  }

  @Test("Without values, quantiles are 0 and the chart is empty")
  func empty() {
    let histogram = Histogram()
    #expect(histogram.quantile(0.99) == 0)
    #expect(histogram.chart.isEmpty)
  }
}

@Suite("Load arguments")
struct LoadArgumentTests {
  @Test(arguments: [("10", 10), ("10s", 10), ("500ms", 0.5), ("2m", 120), ("0.25", 0.25)])
  func `A duration has a unit or is in seconds`(text: String, seconds: Double) throws {
    #expect(try LoadDuration(parsing: text).seconds == seconds)
  }

  @Test(arguments: ["", "s", "-1", "0", "1h", "nan", "inf", "1e9", "ten"])
  func `Other text is not a duration`(text: String) {
    #expect(throws: (any Error).self) { try LoadDuration(parsing: text) }
  }

  @Test(arguments: [("64", 64), ("64B", 64), ("16KiB", 16384), ("1MiB", 1 << 20), ("0", 0)])
  func `A size has a unit or is in bytes`(text: String, bytes: Int) throws {
    #expect(try ByteCount(parsing: text).bytes == bytes)
  }

  @Test(arguments: ["", "-1", "1.5KiB", "65MiB", "KiB", "1kb", "9223372036854775807KiB"])
  func `Other text is not a size`(text: String) {
    #expect(throws: (any Error).self) { try ByteCount(parsing: text) }
  }
}

@Suite("Thresholds of scripts/bench")
struct BenchThresholdTests {
  @Test("Each counter has one threshold")
  func parse() throws {
    let file = try Data(contentsOf: ProjectFile.url("config/bench-thresholds.json"))
    let thresholds = try JSONDecoder().decode([String: Double].self, from: file)
    #expect(
      Set(thresholds.keys) == [
        "instructions_per_round_trip", "allocations_per_round_trip", "openssl_allocations_per_round_trip",
        "instructions_per_connection", "own_instructions_per_connection", "instructions_per_verified_connection",
        "own_instructions_per_admission",
      ])
    #expect(thresholds.values.allSatisfy { $0 >= 0 })
  }

  @Test("The script lists its scenarios in its help without a measurement")
  func help() async throws {
    let process = try ChildProcess(ProjectFile.path("scripts/bench"), ["--help"])
    defer { process.kill() }
    #expect(try await process.exit(within: .seconds(30)).code == 0)
    let text = try await process.output.text()
    #expect(
      text.contains(
        "scenarios: 64b-1, 64b-32, 64b-1000, 16k, 256k, loops, loops-connect, latency, connect, verified, admissions"))
  }
}

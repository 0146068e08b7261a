import GateProcesses
import TestSupport
import Testing
import Transport
import TransportEngine

extension LoadTests {
  @Test("With 50 stalled readers, memory is bounded for each, other clients are served, and no byte is lost")
  func stalls() async throws {
    let readers = Sanitizer.isOn ? 5 : 50
    let backend = try FloodBackend()
    defer { backend.stop() }
    try await EchoProcess.serving { echo in
      var plan = GatePlan()
      plan.isEnforcing = false
      plan.routes = [("/", echo), ("/flood", "ws://127.0.0.1:\(backend.port)")]
      try await GateProcess.serving(plan) { gate in
        let figures = ProcessFigures(of: gate)
        let other = try await Visitor(to: gate).open()
        _ = try await other.exchange(.text("warm"))
        try figures.forgetPeak()
        let before = try figures.memory

        let visitor = try Visitor(to: gate)
        let sockets = try await gather(readers, workers: 10) { _ in try await visitor.open("/flood") }
        try await Self.waitForStall(of: backend)
        #expect(backend.bytesSent < readers * FloodBackend.messageCount * FloodBackend.messageSize)
        // A stalled reader that blocks others does so until it reads.
        for number in 0..<200 {
          #expect(try await other.exchange(.text("\(number)")) == .text("\(number)"))
        }
        let bound = readers * (128 << 10) + (4 << 20)
        expectMemory(try figures.memory - before, below: bound, "for \(readers) stalled readers")

        let tags = try await gather(readers, workers: readers) {
          try await Self.readAll(of: sockets[$0], from: backend)
        }
        #expect(Set(tags).count == readers)
        expectMemory(try figures.peakMemory - before, below: bound, "for \(readers) readers at the peak")
      }
    }
  }

  /// Waits until no reader accepts more bytes from the backend.
  private static func waitForStall(of backend: FloodBackend) async throws {
    var last = (bytes: 0, at: ContinuousClock.now)
    try await eventually("readers to stall", within: .seconds(40)) {
      let bytes = backend.bytesSent
      if bytes != last.bytes { last = (bytes, .now) }
      return bytes > 0 && last.at.duration(to: .now) > .seconds(1)
    }
  }

  /// Reads all messages and returns the number that the backend gave the socket.
  private static func readAll(of socket: ClientWebSocket, from backend: FloodBackend) async throws -> [UInt8] {
    var tags: Set<[UInt8]> = []
    for index in 0..<FloodBackend.messageCount {
      guard case .binary(let message) = try await socket.next(), let tag = backend.tag(of: message, at: index) else {
        throw Unexpected("message \(index) differs from the one that the backend sent")
      }
      tags.insert(tag)
    }
    guard let tag = tags.first, tags.count == 1 else { throw Unexpected("messages of several sockets") }
    return tag
  }
}

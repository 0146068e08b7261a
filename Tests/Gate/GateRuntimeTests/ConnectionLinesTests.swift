import Locking
import Logging
import Testing
import Transport
import TransportEngine

@testable import ConsoleServing

@Suite("The log lines about connections to a console")
struct ConnectionLinesTests {
  private static let address = SocketAddress.ipv4([192, 0, 2, 7], port: 1)
  private static let failed = EngineEvent.handshakeFailed(address: address, reason: "closed")
  private static let refused = EngineEvent.connectionRefused(.plainHTTP, address: address)

  @Test("60 lines a minute are written, and the first of a later minute follows the number of the others")
  func bounded() {
    let lines = LockedValue<[String]>([])
    let start = ContinuousClock.now
    let passed = LockedValue(Duration.zero)
    let log = ConnectionLines(Logger(label: "test") { _ in LineCollector(lines) }) {
      start + passed.withLock { $0 }
    }
    func written(_ events: Int, after duration: Duration) -> [String] {
      lines.withLock { $0 = [] }
      passed.withLock { $0 = duration }
      for number in 0..<events { log.write(number.isMultiple(of: 2) ? Self.failed : Self.refused) }
      return lines.withLock { $0 }
    }
    #expect(written(59, after: .zero).count == 59)
    let last = written(141, after: .seconds(59))
    #expect(last.count == 1 && last[0].hasPrefix("TLS handshake failed") && last[0].contains("192.0.2.7"))
    let next = written(1, after: .seconds(60))
    #expect(next.count == 2 && next[0].hasPrefix("further lines about connections left out") && next[0].contains("140"))
    #expect(written(1, after: .seconds(120)).count == 1, "no line was left out in the minute before")
    // The number is not said before there is a line to write.
    #expect(written(60, after: .seconds(121)).count == 59)
    #expect(written(0, after: .seconds(600)) == [])
    #expect(written(1, after: .seconds(601)).count == 2)
  }

  @Test("A pause of new connections is written whatever else there was, and what is no fault never")
  func others() {
    let lines = LockedValue<[String]>([])
    let log = ConnectionLines(Logger(label: "test") { _ in LineCollector(lines) })
    for _ in 0..<100 { log.write(Self.failed) }
    log.write(.acceptPaused(reason: "no descriptors"))
    log.write(.connectionUnused(address: Self.address))
    #expect(lines.withLock { $0.count } == 61)
    #expect(lines.withLock { $0.last?.hasPrefix("accept paused") } == true)
  }
}

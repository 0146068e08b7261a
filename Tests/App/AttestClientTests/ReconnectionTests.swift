import AttestClient
import Wire
import Testing

@Suite("Reconnection")
struct ReconnectionTests {
  @Test("the bound of a pause doubles up to the longest, and a pause is in its upper half")
  func pauses() throws {
    var reconnection = Reconnection(first: .seconds(1), longest: .seconds(10))
    for bound in [1.0, 2, 4, 8, 10, 10] {
      let next = reconnection.pause(after: .retryLater)
      let pause = try #require(next)
      #expect(pause >= .seconds(bound / 2) && pause <= .seconds(bound), "\(pause) of \(bound)")
    }
    reconnection.reset()
    let next = reconnection.pause(after: .retryLater)
    #expect(try #require(next) <= .seconds(1))
  }

  @Test("a gate's Retry-After is never shortened")
  func retryAfter() throws {
    var reconnection = Reconnection()
    let long = reconnection.pause(after: .retryLater, retryAfter: .seconds(600))
    #expect(long == .seconds(600))
    let short = reconnection.pause(after: .retryLater, retryAfter: .milliseconds(1))
    #expect(try #require(short) >= .seconds(1))
  }

  @Test("a session reconnects a million times without an overflow")
  func long() throws {
    var reconnection = Reconnection()
    for _ in 0..<1_000_000 { _ = reconnection.pause(after: .retryLater) }
    let next = reconnection.pause(after: .retryLater)
    #expect(try #require(next) <= .seconds(60))
  }

  @Test("final advice stops", arguments: GateRefusalCode.Advice.allCases)
  func stops(_ advice: GateRefusalCode.Advice) {
    var reconnection = Reconnection()
    let pause = reconnection.pause(after: advice)
    #expect((pause == nil) == [.stop, .fixRequest].contains(advice))
  }

  @Test(
    "each close code has its advice",
    arguments: [
      (1000, .retryLater), (1001, .retryLater), (1012, .retryLater), (1014, .retryLater), (3008, .retryLater),
      (3003, .stop), (1002, .fixRequest), (1007, .fixRequest), (1008, .fixRequest), (1009, .fixRequest),
      (nil, .retryLater),
    ] as [(UInt16?, GateRefusalCode.Advice)])
  func closeCodes(_ code: UInt16?, _ advice: GateRefusalCode.Advice) {
    let end = SocketError.closed(SocketClosure(code: code, reason: "a\u{1B}[31m"))
    #expect(end.advice == advice)
    #expect(!end.description.contains("\u{1B}"))
  }
}

import Testing
import Transport

@testable import TransportEngine

@Suite("Silence of a peer")
struct PeerSilenceTests {
  private func silence(_ change: (inout PeerSilence) -> Void = { _ in }) -> PeerSilence {
    var silence = PeerSilence(lastSign: 1_000, lastPing: 0, isHeard: true, patience: 60_000, pingInterval: 25_000)
    change(&silence)
    return silence
  }

  @Test("A peer is pinged an interval after its last sign, and not before")
  func pings() {
    #expect(silence().decision(at: 1_000) == .wait(until: 26_000))
    #expect(silence().decision(at: 25_999) == .wait(until: 26_000))
    #expect(silence().decision(at: 26_000) == .ping(next: 51_000))
  }

  @Test("A peer that does not answer is pinged once an interval, and checked at its timeout")
  func pingsAgain() {
    let pinged = silence { $0.lastPing = 26_000 }
    #expect(pinged.decision(at: 26_001) == .wait(until: 51_000))
    #expect(pinged.decision(at: 51_000) == .ping(next: 61_000))
  }

  @Test("A peer is given up exactly when its silence reaches the timeout, to the millisecond")
  func expires() {
    #expect(silence { $0.lastPing = 51_000 }.decision(at: 60_999) == .wait(until: 61_000))
    #expect(silence { $0.lastPing = 51_000 }.decision(at: 61_000) == .expired)
    #expect(silence { $0.patience = nil }.decision(at: 1_000_000_000) == .ping(next: 1_000_025_000))
  }

  @Test("A peer that the gate does not read gets no Ping, but its silence counts")
  func unread() {
    let unread = silence { $0.isHeard = false }
    #expect(unread.decision(at: 26_000) == .wait(until: 51_000))
    #expect(unread.decision(at: 61_000) == .expired)
  }

  @Test("A peer that closed its sending side gets no Ping, but its silence counts")
  func departed() {
    let departed = silence { $0.hasEnded = true }
    #expect(departed.decision(at: 26_000) == .wait(until: 61_000))
    #expect(departed.decision(at: 61_000) == .expired)
  }

  @Test("Without limits no action is ever due")
  func unlimited() {
    let unlimited = silence {
      $0.patience = nil
      $0.pingInterval = nil
    }
    #expect(unlimited.decision(at: 1_000_000_000) == .wait(until: .max))
  }
}

@Suite("Close deadlines")
struct ClosePatienceTests {
  private let patience = ClosePatience(closeTimeout: .seconds(10), lostRightTimeout: .seconds(2))
  private var draining: ClosePatience {
    var patience = patience
    patience.drainDeadline = 31_000
    return patience
  }

  @Test("Peers have the close timeout, and while the loop drains a second more than the drain")
  func durations() {
    #expect(patience.duration(at: 1_000) == .seconds(10))
    #expect(draining.duration(at: 1_000) == .seconds(31))
    #expect(draining.duration(at: 40_000) == .seconds(1))
  }

  @Test("A revoked session gets the short timeout, in a drain too, and never more than the close timeout")
  func revoked() {
    #expect(patience.duration(with: .revoked, at: 1_000) == .seconds(2))
    #expect(draining.duration(with: .revoked, at: 1_000) == .seconds(2))
    #expect(draining.duration(with: .timeout, at: 1_000) == .seconds(31))
    let hasty = ClosePatience(closeTimeout: .seconds(1), lostRightTimeout: .seconds(2))
    #expect(hasty.duration(with: .revoked, at: 1_000) == .seconds(1))
  }

  @Test("A deadline only ever becomes earlier")
  func earlier() {
    #expect(patience.deadline(in: .seconds(10), age: nil, current: nil, at: 1_000) == 11_000)
    #expect(patience.deadline(in: .seconds(10), age: nil, current: 11_000, at: 1_000) == nil)
    #expect(patience.deadline(in: .seconds(10), age: nil, current: 9_000, at: 1_000) == nil)
    #expect(patience.deadline(in: .seconds(2), age: nil, current: 11_000, at: 1_000) == 3_000)
  }

  @Test("A session over its maximum age gets the short timeout, from its age or from now")
  func aged() {
    #expect(patience.deadline(in: .seconds(10), age: 4_000, current: nil, at: 1_000) == 6_000)
    #expect(patience.deadline(in: .seconds(10), age: 500, current: nil, at: 1_000) == 3_000)
    #expect(patience.deadline(in: .seconds(10), age: 60_000, current: nil, at: 1_000) == 11_000)
  }

  @Test("At its deadline a session that the gate closes or that is too old is cut off; others get more time")
  func cutOff() {
    func decision(age: Milliseconds? = nil, isClosedByGate: Bool = false, at now: Milliseconds)
      -> CloseDeadline.Decision
    {
      CloseDeadline(deadline: 5_000, age: age, isClosedByGate: isClosedByGate).decision(at: now)
    }
    #expect(decision(isClosedByGate: true, at: 4_999) == .wait(until: 5_000))
    #expect(decision(isClosedByGate: true, at: 5_000) == .cutOff)
    #expect(decision(at: 5_000) == .extendIfRead)
    #expect(decision(age: 5_001, at: 5_000) == .extendIfRead)
    #expect(decision(age: 5_000, at: 5_000) == .cutOff)
  }
}

@Suite("End of a peer's stream")
struct StreamEndTests {
  @Test("An open stream needs no action, with or without the Close frame of one side")
  func open() {
    #expect(StreamEnd().steps == [])
    #expect(StreamEnd(hasSentClose: true).steps == [])
    #expect(StreamEnd(isToldToClose: true).steps == [])
  }

  @Test("The gate closes its stream after both Close frames, or after its own Close and the end of the peer's stream")
  func answered() {
    #expect(StreamEnd(hasSentClose: true, isToldToClose: true).steps == [.answer])
    #expect(StreamEnd(hasEnded: true, isToldToClose: true, isPassedOn: true).steps == [.answer])
  }

  @Test("The end of a stream is noted and passed on once")
  func passedOn() {
    #expect(StreamEnd(hasEnded: true).steps == [.noteLoss, .passOn])
    #expect(StreamEnd(hasEnded: true, isPassedOn: true).steps == [])
  }

  @Test("A failed connection is closed immediately and the failure is passed on, also after Close frames")
  func failed() {
    let expected: StreamEnd.Steps = [.noteLoss, .close, .passOn]
    #expect(StreamEnd(hasFailed: true).steps == expected)
    #expect(
      StreamEnd(hasFailed: true, hasEnded: true, hasSentClose: true, isToldToClose: true, isPassedOn: true).steps
        == expected)
  }
}

@Suite("Addresses of an upstream")
struct UpstreamAttemptTests {
  private func attempt(_ count: UInt8, hasAlternative: Bool = false) -> UpstreamAttempt {
    var attempt = UpstreamAttempt(deadline: 10_000)
    attempt.startServer(hasAlternative: hasAlternative, at: 2_000)
    attempt.start((0..<count).map { .ipv4([127, 0, 0, $0], port: 1) })
    return attempt
  }

  @Test("Addresses are tried in their order, each once")
  func order() {
    var attempt = attempt(2)
    #expect(attempt.next() == .ipv4([127, 0, 0, 0], port: 1))
    #expect(attempt.mayTryNext(at: 9_999))
    #expect(!attempt.mayTryNext(at: 10_000))
    #expect(attempt.next() == .ipv4([127, 0, 0, 1], port: 1))
    #expect(!attempt.mayTryNext(at: 0))
    #expect(attempt.next() == nil)
    #expect(attempt.address == .ipv4([127, 0, 0, 1], port: 1))
  }

  @Test("Each address gets an equal share of the time, at least a second, and the last one all of it")
  func shares() {
    var attempt = attempt(4)
    _ = attempt.next()
    #expect(attempt.nextTimeout(at: 2_000) == 4_000)
    #expect(attempt.nextTimeout(at: 9_500) == 10_000)
    #expect(attempt.nextTimeout(at: 8_000) == 9_000)
    #expect(attempt.nextTimeout(at: 11_000) == 10_000)
    while attempt.next() != nil {}
    #expect(attempt.nextTimeout(at: 2_000) == 10_000)
  }

  @Test("A server gets half of the remaining time while another can be tried")
  func halves() {
    var attempt = attempt(2, hasAlternative: true)
    _ = attempt.next()
    #expect(attempt.serverDeadline == 6_000 && attempt.nextTimeout(at: 2_000) == 4_000)
    #expect(!attempt.mayTryNext(at: 6_000))
    attempt.startServer(hasAlternative: false, at: 6_000)
    #expect(attempt.serverDeadline == 10_000 && attempt.server == 2 && attempt.next() == nil)
    attempt.startServer(hasAlternative: true, at: 11_000)
    #expect(attempt.serverDeadline == 10_000)
  }
}

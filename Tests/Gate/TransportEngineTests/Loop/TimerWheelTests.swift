import Testing

@testable import TransportEngine

@Suite("Timer wheel")
struct TimerWheelTests {
  /// Nodes with their own memory, as in sessions.
  final class Nodes {
    let nodes: UnsafeMutablePointer<TimerNode>
    let count: Int

    init(_ count: Int) {
      self.count = count
      nodes = .allocate(capacity: count)
      for index in 0..<count {
        (nodes + index).initialize(to: TimerNode())
        nodes[index].slot = UInt32(index)
      }
    }

    deinit { nodes.deallocate() }
  }

  private func fire(_ wheel: inout TimerWheel, at now: Milliseconds) -> [UInt32] {
    var fired: [UInt32] = []
    while let slot = wheel.nextExpired(now: now) { fired.append(slot) }
    return fired.sorted()
  }

  @Test("Every deadline fires once, never early, and at most one tick late", arguments: [0, 1, 999_999])
  func punctual(start: Milliseconds) {
    var wheel = TimerWheel(now: start)
    defer { wheel.deallocate() }
    let nodes = Nodes(400)
    var random = SystemRandomNumberGenerator()
    let deadlines = (0..<nodes.count).map { _ in start + .random(in: 1...200_000, using: &random) }
    for (index, deadline) in deadlines.enumerated() { wheel.schedule(nodes.nodes + index, at: deadline) }
    var now = start
    var fired = 0
    while wheel.count > 0 {
      guard let delay = wheel.delay(from: now) else { break }
      now += max(1, delay)
      for slot in fire(&wheel, at: now) {
        fired += 1
        #expect(deadlines[Int(slot)] <= now)
        #expect(now - deadlines[Int(slot)] <= TimerWheel.tick + 1)
      }
    }
    #expect(fired == nodes.count)
    #expect(wheel.delay(from: now) == nil)
  }

  @Test("A cancelled deadline does not fire, and a moved one fires only at its new time")
  func changes() {
    var wheel = TimerWheel(now: 0)
    defer { wheel.deallocate() }
    let nodes = Nodes(3)
    for index in 0..<3 { wheel.schedule(nodes.nodes + index, at: 1000) }
    wheel.cancel(nodes.nodes)
    wheel.schedule(nodes.nodes + 1, at: 100_000)
    #expect(fire(&wheel, at: 2000) == [2])
    #expect(fire(&wheel, at: 99_000) == [])
    #expect(fire(&wheel, at: 101_000) == [1])
    #expect(wheel.count == 0)
  }

  @Test("Every deadline fires after hours without a call")
  func longSleep() {
    var wheel = TimerWheel(now: 0)
    defer { wheel.deallocate() }
    let nodes = Nodes(600)
    for index in 0..<600 { wheel.schedule(nodes.nodes + index, at: Milliseconds(index) * 1000 + 1) }
    #expect(fire(&wheel, at: 10_000_000).count == 600)
  }

  @Test("A node that is scheduled again while it fires waits for its new deadline")
  func again() {
    var wheel = TimerWheel(now: 0)
    defer { wheel.deallocate() }
    let nodes = Nodes(1)
    wheel.schedule(nodes.nodes, at: 100)
    #expect(wheel.nextExpired(now: 1000) == 0)
    wheel.schedule(nodes.nodes, at: 1001)
    #expect(wheel.nextExpired(now: 1000) == nil)
    #expect(fire(&wheel, at: 1300) == [0])
  }
}

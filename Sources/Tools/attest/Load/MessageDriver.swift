internal import Commands
internal import TransportEngine

/// Sends messages over sockets and measures the time until they come back.
///
/// `@unchecked Sendable`: all state belongs to the thread of the engine's loop.
final class MessageDriver: SocketDriver, @unchecked Sendable {
  enum Cadence: Sendable {
    /// Each socket sends when its previous message has come back, at most `limit` times.
    case closedLoop(limit: Int?)
    /// One message every so many nanoseconds, over the sockets in turn.
    case fixed(period: Double)
  }

  private let cadence: Cadence
  private let count: Int
  private var payload: LoadPayload
  private var sockets: [DrivenSocket?]
  /// By socket: the numbers of sent and returned messages, and the time of the last one.
  private var sent: [Int]
  private var returned: [Int]
  private var sentAt: [UInt64]
  private var isLost: [Bool]
  /// By socket: the number of messages that were given up and may still come back.
  private var givenUp: [Int]
  private var underWay = 0
  /// Messages sent over all sockets; at a fixed cadence they are due one after another.
  private var next = 0
  private var start: UInt64 = 0
  private var end: UInt64 = 0
  private var isRunning = false
  private var finish: (@Sendable () -> Void)?
  private(set) var tally = LoadTally()
  /// The time at which the last message came back.
  private(set) var lastReturn: UInt64 = 0

  init(_ plan: LoadPlan, cadence: Cadence) {
    self.cadence = cadence
    count = plan.connections
    payload = LoadPayload(size: plan.size, sockets: count, verifies: plan.verifies)
    sockets = Array(repeating: nil, count: count)
    sent = Array(repeating: 0, count: count)
    returned = Array(repeating: 0, count: count)
    sentAt = Array(repeating: 0, count: count)
    isLost = Array(repeating: false, count: count)
    givenUp = Array(repeating: 0, count: count)
  }

  var seconds: Double { Double(max(lastReturn, start) - start) / 1e9 }

  /// Begins, possibly again. `finish` is called once, when the time is over and every message has come back or is
  /// lost.
  func begin(for duration: UInt64, _ finish: @escaping @Sendable () -> Void) {
    tally = LoadTally()
    for _ in 0..<isLost.count(where: { $0 }) { tally.lose(Failure(.unavailable, "a socket was lost before")) }
    sent = Array(repeating: 0, count: count)
    returned = Array(repeating: 0, count: count)
    next = 0
    start = monotonicNanoseconds()
    end = start + duration
    isRunning = true
    self.finish = finish
    if case .closedLoop = cadence {
      for number in 0..<count { send(on: number, at: start) }
      settle()
    }
  }

  /// Stops sending. Messages in progress may still come back.
  func stop() {
    isRunning = false
    settle()
  }

  /// Gives up the messages in progress, because of `failure` if it is given. They may come back during a later step,
  /// which does not count them.
  func abandon(because failure: Failure? = nil) {
    guard finish != nil else { return }
    tally.lose(failure ?? Failure(.unavailable, "\(underWay) messages did not come back"))
    for number in 0..<count {
      givenUp[number] += sent[number] - returned[number]
      sent[number] = returned[number]
    }
    underWay = 0
    stop()
  }

  /// Sends the messages that are due at a fixed rate. Returns `false` when there will be no more.
  func tick() -> Bool {
    guard isRunning, case .fixed(let period) = cadence else { return false }
    let now = monotonicNanoseconds()
    while isRunning {
      let due = start + UInt64(Double(next) * period)
      if due >= end {
        stop()
      } else if due > now {
        return true
      } else {
        send(on: next % count, at: due)
        next += 1
      }
    }
    return false
  }

  private func send(on number: Int, at now: UInt64) {
    guard !isLost[number], let socket = sockets[number] else { return }
    sent[number] += 1
    sentAt[number] = now
    underWay += 1
    socket.send(payload.next(for: number))
  }

  private func settle() {
    guard underWay == 0 else { return }
    if case .closedLoop = cadence {} else if isRunning { return }
    let finish = self.finish
    self.finish = nil
    isRunning = false
    finish?()
  }

  // MARK: SocketDriver

  func started(_ socket: DrivenSocket) { sockets[socket.number] = socket }

  func received(_ bytes: UnsafeRawBufferPointer, on socket: DrivenSocket) { payload.take(bytes, of: socket.number) }

  func messageEnded(on socket: DrivenSocket) {
    let number = socket.number
    let now = monotonicNanoseconds()
    let isRight = payload.end(of: number)
    guard givenUp[number] == 0 else {
      givenUp[number] -= 1
      return
    }
    guard returned[number] < sent[number] else {
      tally.mismatches += 1
      return
    }
    if !isRight { tally.mismatches += 1 }
    tally.latency.record(now - min(now, dueTime(of: number)))
    tally.count += 1
    returned[number] += 1
    underWay -= 1
    lastReturn = now
    if isRunning, case .closedLoop(let limit) = cadence, limit.map({ sent[number] < $0 }) ?? (now < end) {
      send(on: number, at: now)
    }
    settle()
  }

  /// Returns the time at which the oldest message of a socket that has not come back was due.
  private func dueTime(of number: Int) -> UInt64 {
    switch cadence {
    case .closedLoop: sentAt[number]
    case .fixed(let period): start + UInt64(Double(number + returned[number] * count) * period)
    }
  }

  func ended(_ socket: DrivenSocket, because reason: String) {
    let number = socket.number
    sockets[number] = nil
    isLost[number] = true
    // After the end of the run either side may close sockets.
    guard finish != nil else { return }
    tally.lose(Failure(.unavailable, "a socket was lost: \(reason)"))
    underWay -= sent[number] - returned[number]
    settle()
  }
}

/// Sends nothing, and counts the sockets that are lost.
///
/// `@unchecked Sendable`: as in `MessageDriver`.
final class IdleDriver: SocketDriver, @unchecked Sendable {
  private(set) var tally = LoadTally()

  func started(_ socket: DrivenSocket) {}
  func received(_ payload: UnsafeRawBufferPointer, on socket: DrivenSocket) {}
  func messageEnded(on socket: DrivenSocket) {}

  func ended(_ socket: DrivenSocket, because reason: String) {
    // No message is counted in this mode, so the first loss is the result of the run.
    tally.lose(Failure(.problems, "a socket was lost: \(reason)"))
  }
}

/// Sends on every socket until no more bytes are accepted, and reads nothing.
///
/// `@unchecked Sendable`: as in `MessageDriver`.
final class StallDriver: SocketDriver, @unchecked Sendable {
  private let frame: PreparedFrame
  private var sockets: [DrivenSocket] = []
  private var isOver = false
  /// `count` is the number of accepted messages.
  private(set) var tally = LoadTally()

  init(size: Int) { frame = PreparedFrame(message: Array(repeating: 0x55, count: size)) }

  /// Begins, possibly again: then the server may have read since.
  func begin() {
    tally.count = 0
    isOver = false
    for socket in sockets { drained(socket) }
  }

  func stop() { isOver = true }

  func started(_ socket: DrivenSocket) {
    socket.stopReading()
    sockets.append(socket)
  }

  func drained(_ socket: DrivenSocket) {
    while !isOver && socket.isDrained {
      socket.send(frame)
      tally.count += 1
    }
  }

  func received(_ payload: UnsafeRawBufferPointer, on socket: DrivenSocket) {}
  func messageEnded(on socket: DrivenSocket) {}

  func ended(_ socket: DrivenSocket, because reason: String) {
    tally.lose(Failure(.unavailable, "a socket was lost: \(reason)"))
    sockets.removeAll { $0 === socket }
  }
}

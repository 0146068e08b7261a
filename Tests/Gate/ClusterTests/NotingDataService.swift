import AppAttest
import ByteCoding
import Cryptography
import GateFixtures
import Locking
import GateRuntime
import SimulatedDevice

/// Stands in Apple's place for gates in this process, and notes what they ask.
///
/// The metric of a key is the number of answers that it got, so that a stored metric says which answer was stored.
final class NotingDataService: Sendable {
  /// What the gates asked so far.
  struct Notes: Sendable {
    /// Exchanges that were answered with a new receipt.
    var answers = 0
    /// Exchanges of a receipt for which there was an answer already.
    var repeats = 0
    /// Exchanges of a receipt that another gate was exchanging at this moment.
    var overlaps = 0
  }

  private struct State {
    var notes = Notes()
    /// The newest receipt of each key that was answered, and the number of answers, by the public key.
    var newest: [[UInt8]: (receipt: [UInt8], number: Int)] = [:]
    /// The receipts that were answered.
    var answered: Set<[UInt8]> = []
    /// The exchanges under way of each receipt.
    var underWay: [[UInt8]: Int] = [:]
  }

  private let devices: [[UInt8]: MintedDevice]
  private let clock: ManualClock
  private let state = LockedValue(State())

  init(_ devices: [MintedDevice], clock: ManualClock) {
    self.devices = Dictionary(devices.map { ($0.key.publicKey.x963, $0) }) { first, _ in first }
    self.clock = clock
  }

  var notes: Notes { state.withLock(\.notes) }

  /// The newest receipt of the key, and the number of answers for it; `nil` if there was none.
  func newest(of device: MintedDevice) -> (receipt: [UInt8], number: Int)? {
    state.withLock { $0.newest[device.key.publicKey.x963] }
  }

  /// Answers a gate with these lines.
  func answer(
    _ request: ExchangeRequest, over lines: GateLines
  ) async throws(ExchangeTransportError) -> ExchangeAnswer {
    guard lines.passes() else { throw .noAnswer(reason: "the gate is gone") }
    state.withLock { state in
      if state.underWay[request.body, default: 0] > 0 { state.notes.overlaps += 1 }
      state.underWay[request.body, default: 0] += 1
    }
    defer { state.withLock { $0.underWay[request.body, default: 1] -= 1 } }
    // Time for the other gate.
    try? await Task.sleep(for: .microseconds(Int.random(in: 0...3000)))
    let answer = answer(request.body)
    guard lines.passes() else { throw .noAnswer(reason: "the gate is gone") }
    return answer
  }

  private func answer(_ body: [UInt8]) -> ExchangeAnswer {
    guard let bytes = Base64.decode(String(decoding: body, as: UTF8.self)), let sent = try? Receipt(bytes),
      let device = devices[sent.publicKey]
    else { return ExchangeAnswer(status: 400) }
    let now = clock.now
    if let notBefore = sent.renewableFrom, now < notBefore { return ExchangeAnswer(status: 304) }
    return state.withLock { state in
      let number = (state.newest[sent.publicKey]?.number ?? 0) + 1
      guard let receipt = try? device.attestations.riskReceipt(of: device.key, metric: UInt32(number), at: now) else {
        return ExchangeAnswer(status: 500)
      }
      state.notes.answers += 1
      if !state.answered.insert(bytes).inserted { state.notes.repeats += 1 }
      state.newest[sent.publicKey] = (receipt, number)
      return ExchangeAnswer(status: 200, body: Array(Base64.encode(receipt).utf8))
    }
  }
}

/// The way of one gate to the data service.
struct LineTransport: ExchangeTransport {
  let service: NotingDataService
  let lines: GateLines

  func send(_ request: ExchangeRequest) async throws(ExchangeTransportError) -> ExchangeAnswer {
    try await service.answer(request, over: lines)
  }
}

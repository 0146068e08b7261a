import AppAttest
import AttestGate
import ByteCoding
import Locking
import GateRuntime

/// A store for many keys: a heap has the times at which they are due.
final class HeapStorage: RiskStorage {
  private struct Row {
    let key: AttestedKey
    var receipt: [UInt8] = []
    var failures = 0
    var isExchanged = false
    /// The number of settlements. An entry of the heap with another number is stale.
    var version = 0
  }

  private struct Entry {
    let due: Timestamp
    let place: Int
    let version: Int
  }

  private struct State {
    var rows: [Row] = []
    var heap: [Entry] = []
    /// Entries that were returned, and are due again unless they were settled.
    var lent: [Entry] = []
    var isLeased = false

    mutating func push(_ entry: Entry) {
      heap.append(entry)
      var child = heap.count - 1
      while child > 0, heap[child].due < heap[(child - 1) / 2].due {
        heap.swapAt(child, (child - 1) / 2)
        child = (child - 1) / 2
      }
    }

    mutating func pop() -> Entry {
      heap.swapAt(0, heap.count - 1)
      let first = heap.removeLast()
      var parent = 0
      while true {
        var least = parent
        for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].due < heap[least].due {
          least = child
        }
        guard least != parent else { return first }
        heap.swapAt(parent, least)
        parent = least
      }
    }

    mutating func returnLent() {
      for entry in lent where rows[entry.place].version == entry.version { push(entry) }
      lent = []
    }
  }

  private let state: LockedValue<State>
  private let places: [KeyID: Int]

  init(_ keys: [AttestedKey], dueAt now: Timestamp) {
    var state = State()
    for (place, key) in keys.enumerated() {
      state.rows.append(Row(key: key))
      state.push(Entry(due: now, place: place, version: 0))
    }
    self.state = LockedValue(state)
    places = Dictionary(keys.enumerated().map { ($1.keyID, $0) }) { first, _ in first }
  }

  var isLeased: Bool { state.withLock(\.isLeased) }
  var earliest: Timestamp? {
    state.withLock { state in
      state.returnLent()
      return state.heap.first?.due
    }
  }

  func dueReceipts(of apps: [AppID], at now: Timestamp, limit: Int) async throws(StoreError) -> [DueReceipt] {
    state.withLock { state in
      state.returnLent()
      while state.lent.count < limit, let first = state.heap.first, first.due <= now {
        let entry = state.pop()
        if state.rows[entry.place].version == entry.version { state.lent.append(entry) }
      }
      let rows = state.lent.map { state.rows[$0.place] }
      return (rows.filter { !$0.isExchanged } + rows.filter(\.isExchanged)).map {
        DueReceipt(key: $0.key, receipt: $0.receipt, failures: $0.failures)
      }
    }
  }

  func settle(_ due: DueReceipt, as settlement: ReceiptSettlement) async throws(StoreError) -> Bool {
    state.withLock { state in
      guard let place = places[due.key.keyID], state.rows[place].receipt == due.receipt else { return false }
      if let receipt = settlement.receipt {
        (state.rows[place].receipt, state.rows[place].isExchanged) = (receipt, true)
      }
      state.rows[place].failures = settlement.failures
      state.rows[place].version += 1
      if let next = settlement.next {
        state.push(Entry(due: next, place: place, version: state.rows[place].version))
      }
      return true
    }
  }

  func beginExchange() async throws(StoreError) -> Bool {
    state.withLock { state in
      defer { state.isLeased = true }
      return !state.isLeased
    }
  }

  func holdsExchange() async throws(StoreError) -> Bool { isLeased }
  func endExchange() async throws(StoreError) { state.withLock { $0.isLeased = false } }
  func riskTally(after cursor: KeyID?, limit: Int) async throws(StoreError) -> RiskTally { RiskTally() }
}

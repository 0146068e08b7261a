import Testing

@testable import TransportEngine

@Suite("Outbox")
struct OutboxTests {
  private func append(_ bytes: [UInt8], to outbox: inout Outbox) {
    bytes.withUnsafeBytes { outbox.append($0) }
  }

  @Test("Data that is appended once uses exactly its size")
  func exact() {
    var outbox = Outbox()
    defer { outbox.removeAll() }
    append([UInt8](repeating: 1, count: 1000), to: &outbox)
    #expect(outbox.count == 1000 && outbox.capacity == 1000)
  }

  @Test("Many small pieces stay complete and in order, with few reallocations")
  func manyPieces() {
    var outbox = Outbox()
    defer { outbox.removeAll() }
    var moves = 0
    for value in 0..<10_000 {
      let before = outbox.capacity
      append([UInt8(truncatingIfNeeded: value)], to: &outbox)
      if outbox.capacity != before { moves += 1 }
    }
    #expect(moves < 30)
    #expect(outbox.bytes.elementsEqual((0..<10_000).map { UInt8(truncatingIfNeeded: $0) }))
    outbox.removeFirst(9999)
    append([5, 6], to: &outbox)
    #expect(Array(outbox.bytes) == [UInt8(truncatingIfNeeded: 9999), 5, 6])
  }
}

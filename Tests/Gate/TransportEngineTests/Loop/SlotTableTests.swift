import Testing

@testable import TransportEngine

@Suite("Slot table")
struct SlotTableTests {
  @Test("A token refers to its occupant while that exists, and to nothing afterwards")
  func generations() {
    var table = SlotTable()
    defer { table.deallocate() }
    let session = SessionRef.allocate(capacity: 1)
    session.initialize(to: RelaySession())
    defer {
      session.pointee.deallocate()
      session.deinitialize(count: 1)
      session.deallocate()
    }
    let first = table.insert(session, .session)
    #expect(table.session(first) == session)
    #expect(table.channel(first) == nil)
    table.remove(first.slot)
    #expect(table.session(first) == nil)
    #expect(table.token(in: first.slot) == nil)
    let second = table.insert(session, .session)
    #expect(second.slot == first.slot && second != first)
    #expect(table.session(first) == nil && table.session(second) == session)
  }

  @Test("The table grows, and an event's data names one slot and side")
  func growth() {
    var table = SlotTable()
    defer { table.deallocate() }
    let session = SessionRef.allocate(capacity: 1)
    session.initialize(to: RelaySession())
    defer {
      session.pointee.deallocate()
      session.deinitialize(count: 1)
      session.deallocate()
    }
    let tokens = (0..<1000).map { _ in table.insert(session, .session) }
    #expect(tokens.allSatisfy { table.session($0) == session })
    let data = tokens.flatMap { [EventLoop.data($0, .client), EventLoop.data($0, .upstream)] }
    #expect(Set(data).count == 2000)
  }
}

import Glibc
import Testing

@testable import TransportEngine

@Suite("Socket state")
struct SocketStateTests {
  @Test("Bytes that the peer reads are counted, also while the outbox is drained")
  func takenWithDrain() throws {
    let listener = try RawListener()
    let peer = try ScriptedSocket(connectingTo: listener.port)
    let accepted = try listener.accept()
    let bio = BufferBIO()
    defer { bio.deallocate() }
    var state = SocketState()
    state.fd = dup(accepted.fd)
    defer { state.close() }
    _ = fcntl(state.fd, F_SETFL, O_NONBLOCK)
    let block = [UInt8](repeating: 7, count: 64 << 10)
    for _ in 0..<400 where state.outbox.count < 256 << 10 {
      block.withUnsafeBytes { state.send($0, through: bio.buffers) }
    }
    let held = state.outbox.count
    state.noteTaking(at: 1)
    #expect(state.noteTaking(at: 2) == 0)
    // Repeats until the kernel reports free space.
    for _ in 0..<400 {
      _ = try peer.read(64 << 10)
      let waiting = state.outbox.count
      state.drainOutbox(through: bio.buffers)
      if state.outbox.count < waiting { break }
    }
    #expect(state.outbox.count < held)
    #expect(state.noteTaking(at: 3) >= 64 << 10)
    #expect(state.noteTaking(at: 4) == 0)
  }
}

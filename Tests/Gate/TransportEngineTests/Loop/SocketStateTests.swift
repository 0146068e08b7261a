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
    let bio = WindowBIO()
    defer { bio.deallocate() }
    var link = SocketState()
    link.fd = dup(accepted.fd)
    defer { link.close() }
    _ = fcntl(link.fd, F_SETFL, O_NONBLOCK)
    let block = [UInt8](repeating: 7, count: 64 << 10)
    for _ in 0..<400 where link.outbox.count < 256 << 10 {
      block.withUnsafeBytes { link.send($0, through: bio.window) }
    }
    let held = link.outbox.count
    link.noteTaking(at: 1)
    #expect(link.noteTaking(at: 2) == 0)
    // Repeats until the kernel reports free space.
    for _ in 0..<400 {
      _ = try peer.read(64 << 10)
      let waiting = link.outbox.count
      link.drainOutbox(through: bio.window)
      if link.outbox.count < waiting { break }
    }
    #expect(link.outbox.count < held)
    #expect(link.noteTaking(at: 3) >= 64 << 10)
    #expect(link.noteTaking(at: 4) == 0)
  }
}

internal import Glibc
internal import TransportEngine

/// The messages of a run, and the comparison of what comes back.
struct LoadPayload {
  private let size: Int
  private let verifies: Bool
  /// One frame for all sockets, if the content is not compared.
  private let common: PreparedFrame
  /// By socket: the message that must come back.
  private var expected: [[UInt8]]
  /// By socket: the number of bytes of the current message that have come back.
  private var received: [Int]
  private var isChanged: [Bool]
  private var random: UInt64 = 0x9E37_79B9_7F4A_7C15

  init(size: Int, sockets: Int, verifies: Bool) {
    self.size = size
    self.verifies = verifies
    common = PreparedFrame(message: (0..<size).map { UInt8(truncatingIfNeeded: $0) })
    expected = verifies ? Array(repeating: [], count: sockets) : []
    received = Array(repeating: 0, count: sockets)
    isChanged = Array(repeating: false, count: sockets)
  }

  /// The next message of a socket. One is under way at a time where bytes are compared.
  mutating func next(for socket: Int) -> PreparedFrame {
    guard verifies else { return common }
    let message = pseudoRandomBytes()
    expected[socket] = message
    return PreparedFrame(message: message)
  }

  mutating func take(_ bytes: UnsafeRawBufferPointer, of socket: Int) {
    let start = received[socket]
    received[socket] += bytes.count
    guard verifies, let came = bytes.baseAddress else { return }
    let isSame = expected[socket].withUnsafeBytes { message in
      guard start + bytes.count <= message.count, let base = message.baseAddress else { return false }
      return memcmp(base + start, came, bytes.count) == 0
    }
    if !isSame { isChanged[socket] = true }
  }

  /// Called at the end of a message. Returns whether its length, and its bytes if they are compared, equal those of
  /// the sent message.
  mutating func end(of socket: Int) -> Bool {
    defer {
      received[socket] = 0
      isChanged[socket] = false
    }
    return received[socket] == size && !isChanged[socket]
  }

  /// Returns different bytes each time, so that a message of another socket, or an older one, is detected.
  private mutating func pseudoRandomBytes() -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      for index in 0..<size {
        if index & 7 == 0 {
          random ^= random << 13
          random ^= random >> 7
          random ^= random << 17
        }
        buffer[index] = UInt8(truncatingIfNeeded: random >> UInt64((index & 7) * 8))
      }
      count = size
    }
  }
}

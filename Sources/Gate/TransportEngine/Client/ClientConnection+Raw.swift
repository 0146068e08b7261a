/// What came back for bytes that were sent as they are.
public struct RawAnswer: Sendable, Hashable {
  public let bytes: [UInt8]
  /// Time ran out before the server closed the connection, switched protocols, or had sent 1 MiB.
  public let isUnfinished: Bool

  public init(bytes: [UInt8], isUnfinished: Bool = false) {
    self.bytes = bytes
    self.isUnfinished = isUnfinished
  }
}

extension ClientConnection {
  /// Sends `bytes` as they are, in good form or not, and gives all that comes back until the server closes the connection
  /// or switches protocols, at most 1 MiB or for `timeout`. The connection is of no use afterwards.
  public func exchange(_ bytes: [UInt8], timeout: Duration) async throws(ClientFault) -> RawAnswer {
    try await perform { (channel, loop, done: @escaping ClientChannel.Callback<RawAnswer>) in
      guard channel.begin(.everything(done), timeout: timeout, in: loop) else { return }
      channel.transmit(bytes, in: loop)
    }
  }
}

/// The bytes that a server sent in response to raw bytes.
public struct RawAnswer: Sendable, Hashable {
  public let bytes: [UInt8]
  /// Whether time ran out before the server closed the connection, switched protocols, or sent more than 1 MiB.
  public let isUnfinished: Bool

  public init(bytes: [UInt8], isUnfinished: Bool = false) {
    self.bytes = bytes
    self.isUnfinished = isUnfinished
  }
}

extension ClientConnection {
  /// Sends `bytes` unchanged, valid or not, and returns everything that arrives until the server closes
  /// the connection, switches protocols, sends more than 1 MiB, or `timeout` has passed. The connection
  /// cannot be used afterwards.
  ///
  /// - Throws: `ClientError` if the connection is busy or closed.
  public func exchange(_ bytes: [UInt8], timeout: Duration) async throws(ClientError) -> RawAnswer {
    try await perform { (channel, loop, done: @escaping ClientChannel.Callback<RawAnswer>) in
      guard channel.begin(.everything(done), timeout: timeout, in: loop) else { return }
      channel.transmit(bytes, in: loop)
    }
  }
}

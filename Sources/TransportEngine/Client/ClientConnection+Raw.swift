extension ClientConnection {
  /// Sends `bytes` as they are, in good form or not, and gives all that comes back until the server closes the connection
  /// or switches protocols, at most 1 MiB or for `timeout`. The connection is of no use afterwards.
  public func exchange(_ bytes: [UInt8], timeout: Duration) async throws(ClientFault) -> [UInt8] {
    try await perform { (channel, loop, done: @escaping ClientChannel.Callback<[UInt8]>) in
      guard channel.begin(.everything(done), timeout: timeout, in: loop) else { return }
      channel.transmit(bytes, in: loop)
    }
  }
}

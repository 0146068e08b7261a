// URLSession's WebSockets do not work outside of Apple's systems.
#if canImport(Darwin)
  public import Foundation

  extension AttestSession {
    /// Opens the WebSocket at `url`, a `wss` URL of this session's gate, with the three headers.
    ///
    /// Returns when the gate has answered 101. Refusals are acted on as `open` does. `session` bounds the time
    /// (`timeoutIntervalForRequest`); for the certificate of a debug build use a session whose delegate presents it,
    /// and open its task without this library.
    public func openWebSocket(
      _ url: URL, session: URLSession = .shared
    ) async throws(AttestError) -> URLSessionWebSocketTask {
      try await open { headers throws(UpgradeError) in
        var request = URLRequest(url: url)
        for field in headers.fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
        let task = session.webSocketTask(with: request)
        task.resume()
        if let error = await task.handshakeError() { throw error }
        return task
      }
    }
  }

  extension URLSessionWebSocketTask {
    /// What went wrong with the opening handshake; `nil` if the socket is open.
    fileprivate func handshakeError() async -> UpgradeError? {
      // A Ping goes out when the handshake is done, or fails with it.
      let failure = await withCheckedContinuation { (continuation: CheckedContinuation<(any Error)?, Never>) in
        sendPing { continuation.resume(returning: $0) }
      }
      guard let failure else { return nil }
      guard let answer = response as? HTTPURLResponse, answer.statusCode != 101 else {
        return .transport(TransportError(failure))
      }
      let headers = answer.allHeaderFields.map { HTTPField("\($0.key)", "\($0.value)") }
      return .refused(GateRefusal(HTTPResponse(status: answer.statusCode, headers: headers)))
    }
  }
#endif

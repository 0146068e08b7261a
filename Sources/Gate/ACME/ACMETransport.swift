public import Wire
internal import Locking
public import Transport
internal import TransportEngine

/// Sends the requests of an ACME client.
public protocol ACMETransport: Sendable {
  /// Sends a request to `url`, which begins with `https`, and returns the whole answer.
  ///
  /// - Throws: `ACMEError.unreachable`, `.untrusted` or `.malformed`.
  func send(
    _ method: String, _ url: String, headers: HeaderFields, body: [UInt8]
  ) async throws(ACMEError) -> Response
}

/// Sends requests over verified TLS with the engine's own client. It keeps one connection open and uses it again.
public final class EngineTransport: ACMETransport {
  private struct Kept: Sendable {
    let place: String
    let connection: ClientConnection
  }

  private let engine: ClientEngine
  private let tls: ClientTLS
  private let kept = LockedValue<Kept?>(nil)
  private let proxies: ProxyVariables
  private let patience: Duration
  private let longest: Int

  /// - Parameters:
  ///   - authorityFile: The CAs (PEM) to trust instead of the system's.
  ///   - patience: The time for one exchange, from the connection to the last byte of the answer. Some servers validate
  ///     before they answer.
  ///   - longest: The maximum length of an answer's body, in bytes.
  ///   - proxies: Choose the proxy for a server.
  /// - Throws: `ACMEError.untrusted` if the file cannot be used.
  public init(
    authorityFile: String?, patience: Duration = .seconds(30), longest: Int = 1 << 20,
    proxies: ProxyVariables = .ofProcess
  ) throws(ACMEError) {
    self.patience = patience
    self.longest = longest
    self.proxies = proxies
    do throws(ServerTLS.SetupError) {
      tls = try ClientTLS(authorityFile: authorityFile)
    } catch {
      throw .untrusted(server: "the ACME server", reason: error.description)
    }
    do throws(ClientError) {
      engine = try ClientEngine()
    } catch {
      throw .unreachable(server: "the ACME server", reason: error.description)
    }
  }

  public func send(
    _ method: String, _ url: String, headers: HeaderFields, body: [UInt8]
  ) async throws(ACMEError) -> Response {
    guard let place = HTTPSPlace(url) else { throw .malformed(url: url, reason: "not a URL that begins with https://") }
    var fields = headers
    fields.append("Host", place.authority)
    let end = ContinuousClock.now + patience
    // The server may have closed a kept connection; a new one then carries the request. If the lost one carried it
    // too, its nonce is spent, and the server refuses the second.
    if let connection = takeKept(place.authority),
      let answer = try? await connection.send(
        method, place.target, headers: fields, body: body, longest: longest, timeout: patience)
    {
      keep(connection, of: place.authority, after: answer)
      return answer
    }
    let proxy: ForwardProxy?
    do throws(ProxyVariableError) {
      proxy = try proxies.proxy(for: .https, host: place.host, port: place.port)
    } catch {
      throw .unreachable(server: place.authority, reason: error.description)
    }
    do throws(ClientError) {
      let connection = try await engine.connect(
        host: place.host, port: place.port, tls: tls, through: proxy,
        timeout: min(try Self.remaining(until: end), .seconds(10)))
      let answer = try await connection.send(
        method, place.target, headers: fields, body: body, longest: longest,
        timeout: try Self.remaining(until: end))
      keep(connection, of: place.authority, after: answer)
      return answer
    } catch {
      throw Self.failure(error, of: place, url)
    }
  }

  /// What is left of the time for an exchange.
  private static func remaining(until end: ContinuousClock.Instant) throws(ClientError) -> Duration {
    let remaining = end - .now
    guard remaining > .zero else { throw .timedOut }
    return remaining
  }

  private func takeKept(_ place: String) -> ClientConnection? {
    kept.withLock { kept in
      defer { kept = nil }
      return kept?.place == place ? kept?.connection : nil
    }
  }

  private func keep(_ connection: ClientConnection, of place: String, after answer: Response) {
    kept.withLock { $0 = answer.closes ? nil : Kept(place: place, connection: connection) }
  }

  private static func failure(_ error: ClientError, of place: HTTPSPlace, _ url: String) -> ACMEError {
    switch error {
    case .untrusted(let reason): .untrusted(server: place.authority, reason: reason)
    case .unreachable, .timedOut, .lost: .unreachable(server: place.authority, reason: "\(error)")
    case .malformed, .tooLong, .refused, .misused: .malformed(url: url, reason: "\(error)")
    }
  }
}

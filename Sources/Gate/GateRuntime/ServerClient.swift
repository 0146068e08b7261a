internal import Commands
internal import Wire
internal import Settings
internal import Transport
internal import TransportEngine

/// Sends requests to one server of the operator's, such as a collector, on a thread of its own.
struct ServerClient: Sendable {
  let address: ServerAddress
  private let client: ClientEngine
  private let tls: ClientTLS?
  private let proxies: ProxyVariables

  /// - Parameters:
  ///   - caFile: PEM; `nil` for the system's authorities.
  ///   - section: The section of the settings, for errors.
  /// - Throws: `Failure` if the file cannot be used, or the system has no thread left.
  init(
    to address: ServerAddress, caFile: String?, section: String, proxies: ProxyVariables
  ) throws(Failure) {
    self.address = address
    self.proxies = proxies
    do throws(ServerTLS.SetupError) {
      tls = try address.isSecure ? ClientTLS(authorityFile: caFile) : nil
    } catch {
      throw Failure(
        .configuration, "\(section).ca_file: \(error)", hint: "set it to a PEM file of CA certificates")
    }
    do throws(ClientError) {
      client = try ClientEngine()
    } catch {
      throw Failure(.internalError, "\(section): \(error)", hint: "the system has no threads or descriptors left")
    }
  }

  /// Posts `body` on a connection of its own: one every few seconds costs little, and no stale one must be detected.
  ///
  /// - Parameters:
  ///   - target: The path, and the query if there is one.
  ///   - fields: Must contain `Host`.
  ///   - longest: The maximum length of the answer's body, in bytes.
  ///   - deadline: For everything from connecting to the end of the answer.
  func post(
    _ body: [UInt8], to target: String, fields: HeaderFields, longest: Int = 1 << 20,
    until deadline: ContinuousClock.Instant
  ) async throws(ClientError) -> Response {
    func patience() throws(ClientError) -> Duration {
      let remaining = deadline - .now
      guard remaining > .zero else { throw .timedOut }
      return remaining
    }
    let proxy: ForwardProxy?
    do throws(ProxyVariableError) {
      proxy = try proxies.proxy(for: tls == nil ? .http : .https, host: address.host, port: address.port)
    } catch {
      throw .unreachable(error.description)
    }
    guard let proxy, tls == nil else {
      let connection = try await client.connect(
        host: address.host, port: address.port, tls: tls, through: proxy, timeout: try patience())
      return try await connection.send(
        "POST", target, headers: fields, body: body, longest: longest, timeout: try patience())
    }
    // Without TLS the proxy reads the request, so its target is the whole URL (RFC 9112 section 3.2.2).
    let connection = try await client.connect(toProxy: proxy, timeout: try patience())
    var fields = fields
    if let authorization = proxy.authorization { fields.append("Proxy-Authorization", authorization) }
    let answer = try await connection.send(
      "POST", "http://\(address.authority)\(target)", headers: fields, body: body, longest: longest,
      timeout: try patience())
    guard answer.status != 407 else {
      throw .unreachable("the proxy \(proxy) answered with status 407: \(proxy.adviceForCredentials)")
    }
    return answer
  }
}
